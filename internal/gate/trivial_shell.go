package gate

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellState is what has been seen on the way through a script.
type shellState struct {
	errexit, pipefail bool
	tested            bool // a command whose outcome is open came before
	functions         map[string]*syntax.Stmt
	calls             *int // of functions, so that one which calls itself comes to an end
}

const mostCalls = 500

func (s *shellState) option(name string, on bool) {
	switch name {
	case "errexit":
		s.errexit = on
	case "pipefail":
		s.pipefail = on
	}
}

// judgeScript judges the text after -c. What cannot be parsed will fail by itself.
func judgeScript(script word, state shellState) verdict {
	if !script.known {
		return verdict{}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script.text), "")
	if err != nil {
		return verdict{}
	}
	if len(file.Stmts) == 0 {
		return always("it is empty")
	}
	if state.functions == nil {
		state.functions, state.calls = map[string]*syntax.Stmt{}, new(int)
	}
	v, _ := state.list(file.Stmts)
	return v
}

// list judges commands one after the other. ends says that the script certainly exits within.
func (s *shellState) list(stmts []*syntax.Stmt) (v verdict, ends bool) {
	decided := false // with errexit an earlier command can fail the whole
	v = always("it is empty")
	for _, stmt := range stmts {
		var stop bool
		prior := v
		v, stop = s.stmt(stmt)
		if isBareExit(stmt) {
			v = prior
		}
		if v.fate == open {
			s.tested = true
			decided = decided || s.errexit
		}
		if v.fate == fails && s.errexit && !stmt.Background {
			return verdict{fate: fails}, true
		}
		if stop {
			ends = true
			break
		}
	}
	if decided {
		return verdict{}, ends
	}
	if v.fate == passes && s.tested && len(stmts) > 1 {
		v.why = "its exit code is that of its last command, which always succeeds, whatever failed before (" + v.why + ")"
		v.instead = "end with the test command, or start with `set -e`"
	}
	return v, ends
}

// isBareExit is `exit` without a number, which keeps the exit code of the command before.
func isBareExit(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	w := literal(call.Args[0])
	return w.known && (w.text == "exit" || w.text == "return")
}

func (s *shellState) stmt(stmt *syntax.Stmt) (verdict, bool) {
	if stmt.Cmd == nil {
		return always("it only opens files"), false
	}
	v, ends := s.command(stmt.Cmd)
	if stmt.Negated {
		switch v.fate {
		case passes:
			v = verdict{fate: fails}
		case fails:
			v = always("it turns a command round that always fails")
		case open:
		}
	}
	if stmt.Background {
		if v.fate == open {
			s.tested = true
		}
		return always("a command in the background counts as success").with("run it in the foreground, or wait for its process number"), false
	}
	return v, ends
}

func (s *shellState) command(cmd syntax.Command) (verdict, bool) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return s.call(c)
	case *syntax.BinaryCmd:
		return s.binary(c)
	case *syntax.Block:
		return s.list(c.Stmts)
	case *syntax.Subshell:
		inner := *s
		v, _ := inner.list(c.Stmts)
		s.tested = s.tested || inner.tested
		return v, false
	case *syntax.IfClause:
		return s.branch(c), false
	case *syntax.WhileClause:
		switch cond := s.body(c.Cond); {
		case cond.fate == open:
			return verdict{}, false // trying until it works
		case (cond.fate == passes) == c.Until:
			return always("its loop never runs"), false
		}
		return s.body(c.Do), false
	case *syntax.ForClause:
		return s.body(c.Do), false
	case *syntax.CaseClause:
		v := always("none of its cases tests anything")
		for _, item := range c.Items {
			if b := s.body(item.Stmts); b.fate != passes {
				v = verdict{}
			}
		}
		return v, false
	case *syntax.FuncDecl:
		if c.Name != nil {
			s.functions[c.Name.Value] = c.Body
		}
		return always("it only defines a function"), false
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return always("`time` has nothing to run"), false
		}
		return s.stmt(c.Stmt)
	case *syntax.DeclClause:
		return always("it only sets variables"), false
	case *syntax.TestClause:
		return judgeTest(testWords(c.X)), false
	}
	return verdict{}, false // arithmetic and what is rare
}

// binary is and, or, and pipes.
func (s *shellState) binary(c *syntax.BinaryCmd) (verdict, bool) {
	switch c.Op {
	case syntax.AndStmt:
		x, ends := s.guarded(c.X)
		if x.fate == fails || ends {
			return x, ends
		}
		y, ends := s.stmt(c.Y)
		if x.fate == passes {
			return y, ends
		}
		return verdict{}, false
	case syntax.OrStmt:
		x, ends := s.guarded(c.X)
		if x.fate == passes || ends {
			return x, ends
		}
		y, ends := s.stmt(c.Y)
		switch {
		case x.fate == fails:
			return y, ends
		case y.fate == passes:
			return always("what follows `||` swallows its failure (%s)", y.why).with("let the test command stand alone, so that its exit code decides"), false
		}
		return verdict{}, false
	}
	x, _ := s.stmt(c.X)
	if x.fate == open {
		s.tested = true
	}
	y, _ := s.pipeEnd(c.Y)
	if s.pipefail && x.fate != passes {
		return verdict{}, false
	}
	if y.fate == passes && x.fate == open {
		y.why = "a pipe has the exit code of its last command, which always succeeds (" + y.why + ")"
		y.instead = "leave the pipe out, or use `bash -o pipefail -c`"
	}
	return y, false
}

// guarded is the left side of && and ||, whose failure errexit ignores.
func (s *shellState) guarded(stmt *syntax.Stmt) (verdict, bool) {
	was := s.errexit
	s.errexit = false
	v, ends := s.stmt(stmt)
	s.errexit = was
	if v.fate == open {
		s.tested = true
	}
	return v, ends
}

// pipeEnd knows filters: at the end of a pipe they read what comes and succeed.
func (s *shellState) pipeEnd(stmt *syntax.Stmt) (verdict, bool) {
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && !stmt.Negated {
		name := literal(call.Args[0])
		switch base(name.text) {
		case "tee", "cat", "head", "tail", "sort", "uniq", "wc", "sed", "tr", "cut", "less", "more", "column", "fold", "nl", "tac", "rev", "ts":
			return always("`%s` passes on what it reads", base(name.text)), false
		}
	}
	return s.stmt(stmt)
}

func (s *shellState) branch(c *syntax.IfClause) verdict {
	cond := verdict{fate: passes} // else has none
	if len(c.Cond) > 0 {
		inner := *s
		inner.errexit = false
		cond, _ = inner.list(c.Cond)
		s.tested = s.tested || inner.tested || cond.fate == open
	}
	then := s.body(c.Then)
	other := always("nothing is run when the condition does not hold")
	if c.Else != nil {
		other = s.branch(c.Else)
	}
	switch {
	case cond.fate == passes:
		return then
	case cond.fate == fails:
		return other
	case then.fate == passes && other.fate == passes:
		return always("it succeeds whatever its condition says").with("let the condition's command stand alone, so that its exit code decides")
	}
	return verdict{}
}

func (s *shellState) body(stmts []*syntax.Stmt) verdict {
	v, _ := s.list(stmts)
	return v
}

// call is a simple command.
func (s *shellState) call(c *syntax.CallExpr) (verdict, bool) {
	if len(c.Args) == 0 {
		return s.assignment(c), false
	}
	ws := make([]word, len(c.Args))
	for i, a := range c.Args {
		ws[i] = literal(a)
	}
	if !ws[0].known {
		return verdict{}, false
	}
	switch name := ws[0].text; name {
	case "set":
		s.set(ws[1:])
	case "exit", "return":
		if len(ws) > 1 && !ws[1].known {
			if !s.tested {
				return always("it exits with a code that no test has set"), true
			}
			return verdict{}, true
		}
		return judgeExit(name, texts(ws[1:])), true
	case "trap":
		if len(ws) > 2 && ws[1].known && has(texts(ws[2:]), "EXIT", "0") && strings.Contains(strings.Join(strings.Fields(ws[1].text), " "), "exit 0") {
			return always("its trap ends every run with `exit 0`").with("leave the exit code alone in the trap"), true
		}
	case "eval":
		parts := texts(ws[1:])
		if len(parts) > 0 && !has(parts, unknown) {
			return judgeScript(word{text: strings.Join(parts, " "), known: true}, *s), false
		}
		return verdict{}, false
	case "source", ".", "read":
		return verdict{}, false
	default:
		if body, ok := s.functions[name]; ok {
			if *s.calls++; *s.calls > mostCalls {
				return verdict{}, false
			}
			return s.stmt(body)
		}
	}
	return judgeArgv(ws), false
}

// assignment alone has the exit code of the last command it substitutes.
func (s *shellState) assignment(c *syntax.CallExpr) verdict {
	v := always("it only sets variables")
	syntax.Walk(c, func(n syntax.Node) bool {
		if sub, ok := n.(*syntax.CmdSubst); ok {
			inner := *s
			v, _ = inner.list(sub.Stmts)
			return false
		}
		return true
	})
	return v
}

func (s *shellState) set(ws []word) {
	for i := 0; i < len(ws); i++ {
		text := ws[i].text
		if !ws[i].known || len(text) < 2 || (text[0] != '-' && text[0] != '+') {
			continue
		}
		rest, _, _ := s.flags(strings.ReplaceAll(text, "c", ""), ws[i+1:])
		i = len(ws) - len(rest) - 1
	}
}
