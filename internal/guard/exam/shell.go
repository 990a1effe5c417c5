package exam

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/proctor-ci/proctor/internal/guard/tamper"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// compareShell lets a script that a gate runs grow and lose nothing. Every command of before has to be there, in its
// order and as it was, and what is new must not be able to end the script, to swallow a failure, or to change what the
// old commands mean. New cases in the form of the old ones pass, with a remark.
func compareShell(f tamper.File, s script) []tamper.Sign {
	before, err := parseShell(f.Before)
	if err != nil {
		return compareLines(f, s) // it is no shell that we read, yet it runs
	}
	if _, err := parseShell(f.After); err != nil {
		return []tamper.Sign{sign(f.Path, s.gate, "the script that it runs can no longer be read as shell: %v", short(err.Error()))}
	}
	old, now := statements(f.Before), statements(f.After)
	var out []tamper.Sign
	at, rows := 0, 0 // in old; rows are data that old commands got more of
	var fresh []statement
	lastLine := 0 // of the last of old that was found
	for _, st := range now {
		if at < len(old) {
			if more, ok := st.continues(old[at]); ok {
				at, rows, lastLine = at+1, rows+more, st.line
				continue
			}
		}
		fresh = append(fresh, st)
	}
	if at < len(old) {
		gone := sign(f.Path, s.gate, "a command of the script that it runs was changed, moved or is gone: %s", short(old[at].whole))
		gone.Line = old[at].line
		return []tamper.Sign{gone}
	}
	base := meanings(before)
	for _, st := range fresh {
		if why := base.overturns(st.node); why != "" {
			bad := sign(f.Path, s.gate, "a new command in the script that it runs %s: %s", why, short(st.whole))
			bad.Line = st.line
			out = append(out, bad)
		}
	}
	if len(out) > 0 || len(fresh)+rows == 0 {
		return out
	}
	if len(fresh) > 0 && len(old) > 0 && fresh[len(fresh)-1].line > lastLine && base.endsOpen {
		bad := sign(f.Path, s.gate, "a new command stands behind the last one, whose exit code was the script's: %s", short(fresh[len(fresh)-1].whole))
		bad.Line, bad.Next = fresh[len(fresh)-1].line, "put it before the script's last command"
		return []tamper.Sign{bad}
	}
	grown := sign(f.Path, s.gate, "the script that it runs got %d more commands or cases", len(fresh)+rows)
	grown.Weak = true
	return []tamper.Sign{grown}
}

// What a text may hold to be read: the parser's recursion follows the text, and the agent wrote it. A script of people
// stays far below.
const (
	maxShell   = 256 << 10
	maxOpeners = 4000
)

var (
	openers = pattern.Of("[(\\[{`<]|\\b(?:if|elif|then|else|while|until|for|select|case|do|time|coproc|function)\\b|&&|\\|")
	unaries = pattern.Of(`(?:[-+!~]\s*){100}`)
)

func parseShell(text []byte) (*syntax.File, error) {
	if len(text) > maxShell || len(openers.FindAllIndex(text, maxOpeners+1)) > maxOpeners || unaries.Match(text) {
		return nil, errors.New("it is too long or too deeply nested")
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(text), "")
}

// meaning is what the old commands rest on.
type meaning struct {
	called   map[string]bool // names that they call
	used     map[string]bool // variables that they read or set
	status   bool            // some read $?
	endsOpen bool            // the exit code is that of the last command, whatever failed before
}

func meanings(f *syntax.File) meaning {
	m := meaning{called: map[string]bool{}, used: map[string]bool{}, endsOpen: true}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				m.called[n.Args[0].Lit()] = true
			}
		case *syntax.ParamExp:
			if n.Param != nil {
				m.used[n.Param.Value] = true
				m.status = m.status || n.Param.Value == "?"
			}
		case *syntax.Assign:
			if n.Name != nil {
				m.used[n.Name.Value] = true
			}
		}
		return true
	})
	if len(f.Stmts) == 0 {
		return m
	}
	if errexit(f) {
		m.endsOpen = false
	}
	syntax.Walk(f.Stmts[len(f.Stmts)-1], func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == "exit" {
			m.endsOpen = false // it ends the script by itself when it fails
		}
		return true
	})
	return m
}

// errexit looks for `set -e` among the commands at the top.
func errexit(f *syntax.File) bool {
	for _, s := range f.Stmts {
		c, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || len(c.Args) < 2 || c.Args[0].Lit() != "set" {
			continue
		}
		for i, a := range c.Args[1:] {
			lit := a.Lit()
			if strings.HasPrefix(lit, "-") && !strings.HasPrefix(lit, "--") && strings.Contains(lit, "e") || lit == "errexit" && c.Args[i].Lit() == "-o" {
				return true
			}
		}
	}
	return false
}

// steering are commands that end a script, or change how the commands after them run.
var steering = []string{
	"exit", "return", "exec", "trap", "set", "shopt", "alias", "unalias", "unset", "eval", "source", ".", "kill", "pkill", "killall", "cd", "pushd", "popd",
	"export", "declare", "typeset", "local", "readonly", "break", "continue", "shift", "read", "mapfile", "readarray", "enable", "builtin", "command", "hash", "umask", "ulimit", "getopts", "wait", "printf -v",
}

var special = []string{"PATH", "IFS", "ENV", "BASH_ENV", "CDPATH", "PS4", "SHELLOPTS", "BASHOPTS", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "PERL5OPT", "GOFLAGS", "TMPDIR", "HOME"}

// overturns says how a new command could take power from the old ones, "" when it cannot.
func (m meaning) overturns(st *syntax.Stmt) string {
	why := ""
	say := func(s string) {
		if why == "" {
			why = s
		}
	}
	if st.Background || st.Coprocess {
		say("runs on beside the others")
	}
	if m.status {
		say("stands in a script that reads the exit code of the command before ($?)")
	}
	syntax.Walk(st, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			name := n.Args[0].Lit()
			if slices.Contains(steering, name) {
				say("can end the script or change what follows (" + name + ")")
			}
			if name == "" {
				say("runs a command that only the run knows")
			}
		case *syntax.FuncDecl:
			if n.Name != nil && (m.called[n.Name.Value] || slices.Contains(steering, n.Name.Value)) {
				say("defines " + n.Name.Value + ", which the script calls, anew")
			}
		case *syntax.DeclClause:
			say("declares variables of the script")
		case *syntax.Assign:
			if n.Name != nil && (m.used[n.Name.Value] || slices.Contains(special, n.Name.Value)) {
				say("sets " + n.Name.Value + ", which the script uses")
			}
		}
		return true
	})
	return why
}
