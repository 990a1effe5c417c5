package forgetest

import (
	"bytes"
	"fmt"
	"strconv"
)

// rewriteReasons puts each refused ref's reason into a receive-pack answer: pkt-lines, most of them
// sideband frames of which band 1 carries the report as pkt-lines of its own. What it cannot read it
// leaves as it is.
func rewriteReasons(answer []byte, reasons map[string]string) []byte {
	if len(reasons) == 0 {
		return answer
	}
	var out, report bytes.Buffer
	rest := answer
	for len(rest) > 0 {
		line, n, ok := pktLine(rest)
		if !ok {
			return answer
		}
		switch {
		case line == nil && report.Len() > 0: // the flush after the report
			out.Write(sideband(rewriteReport(report.Bytes(), reasons)))
			report.Reset()
			out.Write(rest[:n])
		case len(line) > 0 && line[0] == 1:
			report.Write(line[1:])
		case bytes.HasPrefix(line, []byte("ng ")): // a client without sideband
			out.Write(pkt(rewriteLine(line, reasons)))
		default:
			out.Write(rest[:n])
		}
		rest = rest[n:]
	}
	return out.Bytes()
}

func rewriteReport(report []byte, reasons map[string]string) []byte {
	var out bytes.Buffer
	for len(report) > 0 {
		line, n, ok := pktLine(report)
		if !ok {
			break
		}
		if line == nil {
			out.Write(report[:n])
		} else {
			out.Write(pkt(rewriteLine(line, reasons)))
		}
		report = report[n:]
	}
	return out.Bytes()
}

// rewriteLine changes "ng REF pre-receive hook declined\n".
func rewriteLine(line []byte, reasons map[string]string) []byte {
	after, ok := bytes.CutPrefix(line, []byte("ng "))
	if !ok {
		return line
	}
	ref, _, _ := bytes.Cut(after, []byte(" "))
	if reason := reasons[string(ref)]; reason != "" {
		return fmt.Appendf(nil, "ng %s %s\n", ref, reason)
	}
	return line
}

// pktLine reads one line: nil for a flush, n bytes in all.
func pktLine(b []byte) (line []byte, n int, ok bool) {
	if len(b) < 4 {
		return nil, 0, false
	}
	size, err := strconv.ParseUint(string(b[:4]), 16, 16)
	switch {
	case err != nil || size > uint64(len(b)):
		return nil, 0, false
	case size < 4: // flush, delimiter, end
		return nil, 4, true
	}
	return b[4:size], int(size), true
}

func pkt(line []byte) []byte { return append(fmt.Appendf(nil, "%04x", len(line)+4), line...) }

// sideband frames data as band 1. Frames hold at most 65,520 bytes; a report of ours is far below.
func sideband(data []byte) []byte {
	const most = 65000
	var out []byte
	for len(data) > 0 {
		n := min(len(data), most)
		out = append(out, pkt(append([]byte{1}, data[:n]...))...)
		data = data[n:]
	}
	return out
}
