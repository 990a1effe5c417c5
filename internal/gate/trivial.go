package gate

import (
	"fmt"
	"strings"
)

// TrivialError says that a gate proves nothing: it passes whatever the code is.
type TrivialError struct {
	Command string // as a person would type it
	Why     string
	Instead string
}

func (e *TrivialError) Error() string {
	return fmt.Sprintf("gate `%s` proves nothing: %s; %s", e.Command, e.Why, e.Instead)
}

// CheckTrivial refuses a gate that passes whatever the code is: an empty one, `true`, `exit 0`, a test
// command whose failure is swallowed (`|| true`, `; true`, a pipe into tee), and a test runner that is
// told not to run tests (make -n, --collect-only), through wrappers such as env, timeout and sh -c. The
// answer is nil or a *TrivialError.
//
// It reads the command as a shell would, and follows no file: a script in the repository may still do
// nothing. What it cannot understand is not refused.
func CheckTrivial(argv []string) error {
	v := judgeArgv(words(argv))
	if v.fate != passes {
		return nil
	}
	instead := v.instead
	if instead == "" {
		instead = "write the command that runs the tests, so that its exit code decides"
	}
	return &TrivialError{Command: typed(argv), Why: v.why, Instead: instead}
}

// fate is what is known about a command's exit code without running it.
type fate int

const (
	open   fate = iota // it depends on what is tested
	passes             // always zero
	fails              // never zero
)

// verdict is a fate and, for one that passes, why and what to write instead.
type verdict struct {
	fate    fate
	why     string
	instead string
}

func always(why string, args ...any) verdict {
	return verdict{fate: passes, why: fmt.Sprintf(why, args...)}
}

func (v verdict) with(instead string) verdict {
	v.instead = instead
	return v
}

// word is one argument. What is only known at run time has a text that matches nothing.
type word struct {
	text  string
	known bool
}

const unknown = "\x00"

func words(argv []string) []word {
	out := make([]word, len(argv))
	for i, a := range argv {
		out[i] = word{text: a, known: true}
	}
	return out
}

func texts(ws []word) []string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = w.text
		if !w.known {
			out[i] = unknown
		}
	}
	return out
}

// judgeArgv judges one command with its arguments, whatever starts it.
func judgeArgv(ws []word) verdict {
	if len(ws) == 0 {
		return always("it is empty")
	}
	if !ws[0].known {
		return verdict{}
	}
	name := base(ws[0].text)
	args := texts(ws[1:])
	if name == "" {
		return always("it is empty")
	}
	if rest, ok := unwrap(name, ws[1:]); ok {
		if len(rest) == 0 {
			return always("`%s` has nothing to run", name)
		}
		return judgeArgv(rest)
	}
	if isShell(name) {
		return judgeShell(ws[1:])
	}
	if v := judgeBuiltin(name, args); v.fate != open {
		return v
	}
	return judgeProgram(name, args)
}

func base(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh":
		return true
	}
	return false
}

// judgeShell judges a shell with its options. A script file, or what comes by variable, is open.
func judgeShell(ws []word) verdict {
	state := shellState{}
	for i := 0; i < len(ws); i++ {
		text := ws[i].text
		switch {
		case !ws[i].known:
			return verdict{}
		case text == "--help" || text == "--version":
			return always("it prints what the shell is")
		case (text == "-o" || text == "+o") && i+1 < len(ws):
			i++
			state.option(ws[i].text, text[0] == '-')
		case text == "-" || text == "--":
			return verdict{}
		case strings.HasPrefix(text, "--"):
			if text == "--rcfile" || text == "--init-file" {
				i++
			}
		case strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+"):
			rest, script, isScript := state.flags(text, ws[i+1:])
			if isScript {
				return judgeScript(script, state)
			}
			i = len(ws) - len(rest) - 1
		default:
			return verdict{} // a script file
		}
	}
	return always("the shell reads commands from an input that is empty")
}

// flags reads one group such as -eo pipefail -c and says what the script is, when there is one.
func (s *shellState) flags(group string, rest []word) (left []word, script word, isScript bool) {
	on := group[0] == '-'
	for _, f := range group[1:] {
		switch f {
		case 'e':
			s.errexit = on
		case 'o':
			if len(rest) > 0 {
				s.option(rest[0].text, on)
				rest = rest[1:]
			}
		case 'c':
			isScript = true
		}
	}
	if !isScript {
		return rest, word{}, false
	}
	// More options may stand between -c and the script.
	for len(rest) > 0 && rest[0].known && len(rest[0].text) > 1 && (rest[0].text[0] == '-' || rest[0].text[0] == '+') {
		next := rest[0].text
		rest = rest[1:]
		if next == "--" {
			break
		}
		rest, _, _ = s.flags(next, rest)
	}
	if len(rest) == 0 {
		return nil, word{text: "", known: true}, true
	}
	return rest[1:], rest[0], true
}

// typed is argv as a person would type it, cut to one line of a message.
func typed(argv []string) string {
	parts := make([]string, len(argv))
	for i, a := range argv {
		if a == "" || strings.ContainsAny(a, " \t\n'\"`$&|;<>()*?[]#~\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		parts[i] = a
	}
	line := strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
