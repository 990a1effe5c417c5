package toolloop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Bounds of one command.
const (
	shellTime    = 120 * time.Second
	shellTimeMax = 1200 * time.Second
	headBytes    = 8 << 10
	tailBytes    = 16 << 10
)

type shellInput struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds"`
}

// shell runs a line in the confinement that this process itself is in. A time-out ends its whole process group; what
// left that group, or was started in the background, ends with the call of the agent at the latest.
func (t *tools) shell(ctx context.Context, in shellInput) result {
	limit := shellTime
	switch d := time.Duration(in.Timeout) * time.Second; {
	case in.Command == "":
		return wrong("no command is given")
	case in.Timeout < 0 || d > shellTimeMax:
		return wrong("timeout_seconds is from 1 to %d", int(shellTimeMax/time.Second))
	case d > 0:
		limit = d
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	out := &headTail{}
	cmd := exec.CommandContext(ctx, shellProgram(), "-c", in.Command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 200 * time.Millisecond // a background process may hold the pipe
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return wrong("the command could not be started: %v", err)
	}
	status := fmt.Sprintf("exit code %d", cmd.ProcessState.ExitCode())
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		status = fmt.Sprintf("ended by signal %d (%s)", int(ws.Signal()), ws.Signal())
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		status = fmt.Sprintf("ended after %s, its time limit; give timeout_seconds when it needs longer", limit)
	}
	return result{Text: status + "\n" + out.text(), Error: !cmd.ProcessState.Success()}
}

// shellProgram is bash where there is one.
func shellProgram() string {
	if p, err := exec.LookPath("bash"); err == nil {
		return p
	}
	return "sh"
}

// headTail keeps the beginning and the end of what is written, in memory that does not grow.
type headTail struct {
	mu   sync.Mutex
	head []byte
	tail []byte // a ring once it is full
	at   int
	all  int64
}

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	h.all += int64(n)
	if room := headBytes - len(h.head); room > 0 {
		k := min(room, len(p))
		h.head, p = append(h.head, p[:k]...), p[k:]
	}
	if len(p) > tailBytes {
		p = p[len(p)-tailBytes:]
	}
	if room := tailBytes - len(h.tail); room > 0 {
		k := min(room, len(p))
		h.tail, p = append(h.tail, p[:k]...), p[k:]
	}
	for len(p) > 0 {
		k := copy(h.tail[h.at:], p)
		h.at, p = (h.at+k)%tailBytes, p[k:]
	}
	return n, nil
}

func (h *headTail) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := append(append([]byte{}, h.tail[h.at:]...), h.tail[:h.at]...)
	gap := h.all - int64(len(h.head)) - int64(len(end))
	if gap == 0 {
		return text(append(append([]byte{}, h.head...), end...))
	}
	return fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", text(h.head), gap, text(end))
}
