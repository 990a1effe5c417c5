package gate

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Call is one command that a gate runs. A word that only the run knows is empty.
type Call struct {
	Words []string
	Dir   string // where it runs, relative to the checkout, as far as plain `cd` says; "" is the checkout
}

// Calls lists the commands of a gate as far as its text shows, through wrappers such as env and timeout, and through
// sh -c. It follows no file: a script appears as the command that runs it.
func Calls(argv []string, dir string) []Call {
	c := &caller{dir: dir}
	c.argv(words(argv), 0)
	return c.calls
}

// maxNesting bounds shells in shells.
const maxNesting = 8

type caller struct {
	dir   string
	calls []Call
}

func (c *caller) argv(ws []word, depth int) {
	if len(ws) == 0 || depth > maxNesting {
		return
	}
	if !ws[0].known {
		c.add(ws)
		return
	}
	name := base(ws[0].text)
	if rest, ok := unwrap(name, ws[1:]); ok {
		c.argv(rest, depth+1)
		return
	}
	if isShell(name) {
		c.shell(ws, depth)
		return
	}
	if name == "eval" && ws[0].text == name {
		c.script(word{text: strings.Join(texts(ws[1:]), " "), known: true}, depth+1)
		return
	}
	c.add(ws)
}

func (c *caller) add(ws []word) {
	call := Call{Dir: c.dir}
	for _, w := range ws {
		if !w.known {
			w.text = ""
		}
		call.Words = append(call.Words, w.text)
	}
	c.calls = append(c.calls, call)
}

// shell finds the script of a shell with its options; a script file is a call of the shell.
func (c *caller) shell(ws []word, depth int) {
	var state shellState
	for i := 1; i < len(ws); i++ {
		text := ws[i].text
		switch {
		case !ws[i].known || text == "-" || text == "--":
			c.add(append([]word{ws[0]}, ws[min(i+1, len(ws)):]...))
			return
		case (text == "-o" || text == "+o" || text == "--rcfile" || text == "--init-file") && i+1 < len(ws):
			i++
		case strings.HasPrefix(text, "--"):
		case len(text) > 1 && (text[0] == '-' || text[0] == '+'):
			rest, script, isScript := state.flags(text, ws[i+1:])
			if isScript {
				c.script(script, depth+1)
				return
			}
			i = len(ws) - len(rest) - 1
		default:
			c.add(append([]word{ws[0]}, ws[i:]...))
			return
		}
	}
}

func (c *caller) script(text word, depth int) {
	if !text.known || depth > maxNesting {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text.text), "")
	if err != nil {
		return
	}
	c.walk(file, depth)
}

// walk keeps to the order in which the shell reads, so that a `cd` holds for what follows it; a subshell comes back.
func (c *caller) walk(root syntax.Node, depth int) {
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Subshell:
			was := c.dir
			for _, s := range n.Stmts {
				c.walk(s, depth)
			}
			c.dir = was
			return false
		case *syntax.CmdSubst:
			was := c.dir
			for _, s := range n.Stmts {
				c.walk(s, depth)
			}
			c.dir = was
			return false
		case *syntax.CallExpr:
			c.call(n, depth)
		}
		return true
	})
}

func (c *caller) call(n *syntax.CallExpr, depth int) {
	if len(n.Args) == 0 {
		return
	}
	ws := make([]word, len(n.Args))
	for i, a := range n.Args {
		ws[i] = literal(a)
	}
	if ws[0].text == "cd" || ws[0].text == "pushd" {
		if len(ws) == 2 && ws[1].known && !path.IsAbs(ws[1].text) {
			c.dir = strings.TrimPrefix(path.Join(c.dir, ws[1].text), ".")
		}
		return
	}
	c.argv(ws, depth+1)
}
