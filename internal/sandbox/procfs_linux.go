package sandbox

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// proc is one process as /proc shows it. Its start time (in clock ticks since boot) tells it from a
// later one with the same number.
type proc struct {
	pid, parent, session int
	start                string
	dead                 bool // a zombie, or about to be one
}

// readProc reads /proc/PID/stat. The program's name stands in parentheses and may itself hold blanks,
// parentheses and newlines, so the fields are counted from the last closing one.
func readProc(pid int) (proc, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	return parseStat(pid, raw)
}

func parseStat(pid int, raw []byte) (proc, bool) {
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return proc{}, false
	}
	f := bytes.Fields(raw[end+1:]) // state, parent, group, session, …; the start time is field 22 of the line, 20 from here
	if len(f) < 20 || len(f[0]) != 1 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	session, err2 := strconv.Atoi(string(f[3]))
	if err1 != nil || err2 != nil {
		return proc{}, false
	}
	state := f[0][0]
	return proc{pid: pid, parent: parent, session: session, start: string(f[19]), dead: state == 'Z' || state == 'X' || state == 'x'}, true
}

// descendants lists the living processes below root, root itself not among them.
func descendants(root int) []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	children := map[int][]proc{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var out []proc
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			queue = append(queue, p.pid)
			if !p.dead {
				out = append(out, p)
			}
		}
	}
	return out
}

// signal reaches exactly this process, never a later one with its number.
func (p proc) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		// Old kernels and container profiles lack pidfds; the look at the start time narrows the gap.
		if now, ok := readProc(p.pid); !ok || now.start != p.start {
			return unix.ESRCH
		}
		return unix.Kill(p.pid, sig)
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := readProc(p.pid); !ok || now.start != p.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// killBelow freezes everything below root, again and again until a look finds nothing new, and kills
// it then: what is frozen cannot fork, so a fork bomb loses the race. It returns what it killed.
func killBelow(root int) []proc {
	type id struct {
		pid   int
		start string
	}
	frozen := map[id]proc{}
	const rounds = 64
	for range rounds {
		fresh := 0
		for _, p := range descendants(root) {
			if _, ok := frozen[id{p.pid, p.start}]; ok {
				continue
			}
			frozen[id{p.pid, p.start}] = p
			_ = p.signal(unix.SIGSTOP)
			fresh++
		}
		if fresh == 0 {
			break
		}
	}
	out := make([]proc, 0, len(frozen))
	for _, p := range frozen {
		_ = p.signal(unix.SIGKILL)
		out = append(out, p)
	}
	return out
}
