package exam

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// statement is a command at the top of a script, written in one way however it was laid out.
type statement struct {
	node  *syntax.Stmt
	whole string     // with its data
	bare  string     // without it
	data  [][]string // lines of here-documents, elements of arrays, words of for loops, in order
	line  int
}

// continues says whether s is the old command, and how many rows of data it got more. Data may grow by plain words:
// a table of cases is one.
func (s statement) continues(old statement) (more int, ok bool) {
	if s.bare != old.bare || len(s.data) != len(old.data) {
		return 0, false
	}
	for i, rows := range s.data {
		n, ok := grew(old.data[i], rows)
		if !ok {
			return 0, false
		}
		more += n
	}
	return more, true
}

// grew says whether all old rows are there in their order, and how many plain ones came between.
func grew(old, now []string) (more int, ok bool) {
	at := 0
	for _, row := range now {
		switch {
		case at < len(old) && row == old[at]:
			at++
		case strings.ContainsAny(row, "$`\\"):
			return 0, false // the shell would run or expand it
		default:
			more++
		}
	}
	return more, at == len(old)
}

// statements reads the text twice, for taking the data out of a command changes it.
func statements(text []byte) []statement {
	whole, err := parseShell(text)
	if err != nil {
		return nil
	}
	bare, err := parseShell(text)
	if err != nil {
		return nil
	}
	out := make([]statement, len(whole.Stmts))
	for i, s := range whole.Stmts {
		out[i] = statement{node: s, whole: printed(s), line: int(s.Pos().Line()), data: takeData(bare.Stmts[i])}
		out[i].bare = printed(bare.Stmts[i])
	}
	return out
}

func printed(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, n); err != nil {
		return "?" + err.Error()
	}
	return b.String()
}

// takeData empties what is data in a command and returns it. What is fed to a shell or an interpreter is code.
func takeData(s *syntax.Stmt) [][]string {
	var out [][]string
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			for _, r := range n.Redirs {
				if r.Hdoc != nil && !runsInput(n.Cmd) {
					out = append(out, strings.Split(strings.TrimSuffix(printed(r.Hdoc), "\n"), "\n"))
					r.Hdoc = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: ""}}}
				}
			}
		case *syntax.ArrayExpr:
			var rows []string
			for _, e := range n.Elems {
				rows = append(rows, printed(e.Value))
			}
			n.Elems, n.Last = nil, nil
			out = append(out, rows)
		case *syntax.WordIter:
			var rows []string
			for _, w := range n.Items {
				rows = append(rows, printed(w))
			}
			n.Items = nil
			out = append(out, rows)
		}
		return true
	})
	return out
}

// runsInput: a shell or interpreter, or what cannot be told from one.
func runsInput(cmd syntax.Command) bool {
	call, ok := cmd.(*syntax.CallExpr)
	if !ok {
		return cmd == nil // a loop reads its rows as data
	}
	if len(call.Args) == 0 {
		return true
	}
	switch name := call.Args[0].Lit(); name {
	case "cat", "read", "grep", "diff", "cmp", "awk", "sort", "tee", "jq", "wc", "head", "tail", "tr", "sed", "cut", "mapfile", "readarray":
		return name == "awk" || name == "sed"
	}
	return true
}
