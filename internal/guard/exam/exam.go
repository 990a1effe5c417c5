// Package exam owns the question which files of the repository the gates run, and whether a change took power from
// them. It must never run anything, nor decide what a test means: it follows the commands of the base commit's
// configuration through scripts, package.json and Makefiles, and compares texts.
package exam

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/pattern"
)

// Gate is a command of the base commit's configuration.
type Gate struct {
	Name string // as people know it: "gates.iteration"
	Argv []string
}

// Files reads a file of the base commit; ok is false when there is none, or none that is a text of ordinary size.
type Files func(path string) (text []byte, ok bool)

// Exam is what the gates run, as far as text shows. The zero value knows of nothing.
type Exam struct {
	scripts  map[string]script
	packages map[string]map[string]string // package.json → name of a script → the gate that runs it
	makes    map[string]*makeUse          // directory → how make is used there
	tools    map[string]map[string]bool   // directory → runners that are started there
	files    Files
}

// script is a file that a gate runs as a program.
type script struct {
	gate  string
	shell bool
	exam  bool // by its name it examines; otherwise it may as well be what is examined
}

// makeUse is one directory's use of make.
type makeUse struct {
	gate    string
	file    string
	targets []string
}

// Read follows the gates' commands. It never fails: what it cannot understand it does not know.
func Read(gates []Gate, files Files) *Exam {
	e := &Exam{
		scripts: map[string]script{}, packages: map[string]map[string]string{}, makes: map[string]*makeUse{},
		tools: map[string]map[string]bool{}, files: files,
	}
	for _, g := range gates {
		e.follow(g.Name, g.Argv, "", 0)
	}
	return e
}

// maxDepth bounds scripts that run scripts.
const maxDepth = 6

func (e *Exam) follow(gateName string, argv []string, dir string, depth int) {
	if depth > maxDepth {
		return
	}
	for _, c := range gate.Calls(argv, dir) {
		e.call(gateName, c, depth)
	}
}

func (e *Exam) call(gateName string, c gate.Call, depth int) {
	words := c.Words
	name := path.Base(words[0])
	plain := strings.TrimRight(name, "0123456789.")
	e.use(c.Dir, plain)
	switch {
	case plain == "." || plain == "source" || name == "." || name == "source":
		if len(words) > 1 {
			e.script(gateName, c.Dir, words[1], true, depth)
		}
	case strings.Contains(words[0], "/"):
		e.script(gateName, c.Dir, words[0], false, depth)
	case isShell(name):
		if len(words) > 1 {
			e.script(gateName, c.Dir, words[1], true, depth)
		}
	case isInterpreter(plain):
		e.interpreter(gateName, c, depth)
	case plain == "npm" || plain == "pnpm" || plain == "yarn" || plain == "bun":
		e.npm(gateName, c, depth)
	case plain == "make" || plain == "gmake":
		e.make(gateName, c, depth)
	}
}

func (e *Exam) use(dir, tool string) {
	if e.tools[dir] == nil {
		e.tools[dir] = map[string]bool{}
	}
	e.tools[dir][tool] = true
}

// uses says whether one of the tools is started anywhere.
func (e *Exam) uses(tools ...string) bool {
	for _, started := range e.tools {
		for _, t := range tools {
			if started[t] {
				return true
			}
		}
	}
	return false
}

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}, name)
}

func isInterpreter(name string) bool {
	return slices.Contains([]string{"python", "pypy", "node", "nodejs", "ruby", "perl", "php", "deno", "tsx", "ts-node", "lua", "Rscript"}, name)
}

// interpreter finds the program: a file, or a module that is a runner of its own.
func (e *Exam) interpreter(gateName string, c gate.Call, depth int) {
	for i := 1; i < len(c.Words); i++ {
		w := c.Words[i]
		switch {
		case w == "-m" && i+1 < len(c.Words):
			e.call(gateName, gate.Call{Words: append([]string{c.Words[i+1]}, c.Words[i+2:]...), Dir: c.Dir}, depth)
			return
		case w == "-c" || w == "-e" || w == "--eval" || w == "-p" || w == "":
			return
		case w == "--test":
			e.use(c.Dir, "node --test")
		case w == "run" && path.Base(c.Words[0]) == "deno", strings.HasPrefix(w, "-"):
		default:
			e.script(gateName, c.Dir, w, false, depth)
			return
		}
	}
}

// script notes a file and follows a shell script into what it runs.
func (e *Exam) script(gateName, dir, name string, shell bool, depth int) {
	p := within(dir, name)
	if p == "" {
		return
	}
	if _, known := e.scripts[p]; known {
		return
	}
	text, ok := e.files(p)
	if !ok {
		return
	}
	shell = shell || shebang.Match(text) || strings.HasSuffix(p, ".sh") || strings.HasSuffix(p, ".bash")
	e.scripts[p] = script{gate: gateName, shell: shell, exam: examines(p)}
	if shell {
		e.follow(gateName, []string{"sh", "-c", string(text)}, dir, depth+1)
	}
}

var shebang = pattern.Of(`^#!\s*\S*(?:/env\s+(?:-S\s+)?)?(?:/|\b)(?:ba|da|k|z|a)?sh\b`)

// within is a name relative to a directory of the repository, "" when it leads out of it.
func within(dir, name string) string {
	if name == "" || path.IsAbs(name) {
		return ""
	}
	p := path.Join(dir, name)
	if p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return ""
	}
	return p
}

// examWords are parts of names that say that a file examines others.
var examWords = pattern.Of(`(?i)(?:^|[^a-z])(?:(?:run|all|unit)?[-_.]?tests?|testing|tester|runtests?|specs?|checks?|checker|ci|gates?|e2e|verify|verification|qa|lint|validate|acceptance|regression|smoke|scripts?|hack|tools?|harness|suite)(?:[^a-z]|$)`)

func examines(p string) bool { return examWords.MatchString(p) }

// text of a side, as a file: a symlink's target or a missing file is no program.
func lines(b []byte) []string {
	return strings.Split(string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))), "\n")
}
