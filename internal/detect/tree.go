package detect

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Limits of the walk: markers lie near the root, and a monorepo must not cost seconds.
const (
	maxFiles = 20_000
	maxDepth = 5
	maxRead  = 1 << 20
)

// tree is the names of the files, sorted by depth and then by name.
type tree struct {
	fsys  fs.FS
	files []string
	known map[string]bool
	cut   bool
}

// skipped are folders that hold other people's code or what a build made.
func skipped(name string) bool {
	switch name {
	case ".git", "node_modules", "vendor", "target", "dist", "build", "out", "venv", "__pycache__", "deps", "_build", "Pods", "testdata", "fixtures", "third_party":
		return true
	}
	return strings.HasPrefix(name, ".") && name != ".github" && name != ".gitlab"
}

func list(fsys fs.FS) *tree {
	t := &tree{fsys: fsys, known: map[string]bool{}}
	level := []string{"."}
	for depth := 0; depth < maxDepth && len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			entries, err := fs.ReadDir(fsys, dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				p := path.Join(dir, e.Name())
				switch {
				case e.IsDir() && !skipped(e.Name()):
					next = append(next, p)
				case e.Type().IsRegular() && len(t.files) < maxFiles:
					t.files = append(t.files, p)
					t.known[p] = true
				case e.Type().IsRegular():
					t.cut = true
				}
			}
		}
		slices.Sort(next)
		level = next
	}
	return t
}

func inDir(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// has gives those of names that lie in dir.
func (t *tree) has(dir string, names ...string) []string {
	var found []string
	for _, n := range names {
		if p := inDir(dir, n); t.known[p] {
			found = append(found, p)
		}
	}
	return found
}

// first is the first of has, "" when there is none.
func (t *tree) first(dir string, names ...string) string {
	if found := t.has(dir, names...); len(found) > 0 {
		return found[0]
	}
	return ""
}

// match is the first few files under dir whose path below it matches.
func (t *tree) match(dir string, re *pattern.Regexp) []string {
	const enough = 2
	var found []string
	for _, f := range t.files {
		below := f
		if dir != "" {
			var ok bool
			if below, ok = strings.CutPrefix(f, dir+"/"); !ok {
				continue
			}
		}
		if re.MatchString(below) {
			if found = append(found, f); len(found) == enough {
				break
			}
		}
	}
	return found
}

// read is a file's text, "" when it cannot be read.
func (t *tree) read(name string) string {
	if name == "" {
		return ""
	}
	f, err := t.fsys.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return ""
	}
	return string(data)
}

// says tells whether a file holds a pattern.
func (t *tree) says(name string, re *pattern.Regexp) bool { return re.MatchString(t.read(name)) }

// stacks asks every detector about one folder.
func (t *tree) stacks(dir string) []stack {
	var found []stack
	for _, detect := range detectors() {
		if s, ok := detect(t, dir); ok {
			s.dir = dir
			found = append(found, s)
		}
	}
	return found
}

// plainDir is a folder's name that needs no quoting in a line of shell.
var plainDir = pattern.Of(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// nested finds projects one or two folders down. Folders inside one that is a project are its own.
func (t *tree) nested(root []stack) []stack {
	if len(root) > 0 && slices.ContainsFunc(root, func(s stack) bool { return s.name == "cmake" || s.name == "bazel" }) {
		return nil
	}
	dirs := map[string]bool{}
	for _, f := range t.files {
		if d := path.Dir(f); d != "." && strings.Count(d, "/") < 2 && plainDir.MatchString(d) {
			dirs[d] = true
		}
	}
	var sorted []string
	for d := range dirs {
		sorted = append(sorted, d)
	}
	slices.Sort(sorted)
	var found []stack
	taken := ""
	for _, d := range sorted {
		if taken != "" && strings.HasPrefix(d, taken+"/") {
			continue
		}
		if list := t.stacks(d); len(list) > 0 {
			found = append(found, list...)
			taken = d
		}
	}
	return found
}

func detectors() []func(*tree, string) (stack, bool) {
	return []func(*tree, string) (stack, bool){
		golang, node, deno, python, rust, maven, gradle, dotnet, ruby, php, elixir, swift, dart, haskell, scala, zig, bazel, cmake, meson, terraform,
	}
}
