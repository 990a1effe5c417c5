package forgetest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// logWriter splits into lines, hides secrets, obeys ::add-mask::, and keeps all. Both of a step's
// streams go through it, as both are scanned for workflow commands.
type logWriter struct {
	out io.Writer

	mu    sync.Mutex
	part  bytes.Buffer
	all   bytes.Buffer
	masks []string
	stop  string // token of ::stop-commands::
}

// mask hides a value from now on, and each line of one with several.
func (l *logWriter) mask(value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addMask(value)
}

func (l *logWriter) addMask(value string) {
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line != "" {
			l.masks = append(l.masks, line)
		}
	}
	// The longest first: a secret that holds another must not leave its rest behind.
	slices.SortFunc(l.masks, func(a, b string) int { return len(b) - len(a) })
}

func (l *logWriter) hide(s string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden(s)
}

func (l *logWriter) hidden(s string) string {
	for _, m := range l.masks {
		s = strings.ReplaceAll(s, m, "***")
	}
	return s
}

func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part.Write(p)
	for {
		line, err := l.part.ReadString('\n')
		if err != nil {
			l.part.Reset()
			l.part.WriteString(line)
			return len(p), nil
		}
		l.line(line)
	}
}

func (l *logWriter) line(s string) {
	if l.stop != "" {
		if strings.TrimSpace(s) == "::"+l.stop+"::" {
			l.stop = ""
		}
	} else if v, ok := strings.CutPrefix(s, "::add-mask::"); ok {
		l.addMask(v)
		s = "::add-mask::***\n"
	} else if v, ok := strings.CutPrefix(s, "::stop-commands::"); ok {
		l.stop = strings.TrimSpace(v)
	}
	s = l.hidden(s)
	l.all.WriteString(s)
	if l.out != nil {
		io.WriteString(l.out, s) // a viewer that went away does not stop the run
	}
}

func (l *logWriter) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.part.Len() > 0 {
		l.line(l.part.String() + "\n")
		l.part.Reset()
	}
}

func (l *logWriter) kept() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.all.Bytes())
}
