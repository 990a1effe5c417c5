package evidence

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path/filepath"
	"strings"
)

// SaveGateLog writes what a gate printed, redacted and compressed, beside the record, and returns
// the file's name for Gate.Log. A sealed gate leaves no file and no name, whatever it printed. One gate may run in several
// places of one tick, so the name says where it ran, unless that is the place where gates of a tick run.
func SaveGateLog(dir string, tick int, g Gate, output []byte, red *Redactor) (string, error) {
	if g.Sealed() || len(output) == 0 {
		return "", nil
	}
	kind := "gate"
	if g.Where != "gate" && g.Where != "base" {
		kind = fileWord(g.Where)
	}
	name := fmt.Sprintf("%s-%02d-%s-%s.log.gz", kind, tick, fileWord(g.Class), fileWord(g.Name))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := red.Writer(z)
	_, err := w.Write(output)
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return "", fmt.Errorf("compress log of gate %s: %w", g.Name, err)
	}
	if err := WriteFile(filepath.Join(dir, name), b.Bytes()); err != nil {
		return "", err
	}
	return name, nil
}

// fileWord makes a short file name part of any text.
func fileWord(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
		if b.Len() == 40 {
			break
		}
	}
	if b.Len() == 0 {
		return "gate"
	}
	return b.String()
}
