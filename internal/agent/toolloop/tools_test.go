package toolloop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func toolsIn(t *testing.T, dir string) func(name string, input object) result {
	t.Helper()
	tl, err := newTools(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.close)
	return func(name string, input object) result {
		b, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return tl.run(t.Context(), call{Name: name, Input: string(b)})
	}
}

func wants(t *testing.T, r result, isError bool, parts ...string) {
	t.Helper()
	if r.Error != isError {
		t.Errorf("error %t: %.400s", r.Error, r.Text)
	}
	for _, p := range parts {
		if !strings.Contains(r.Text, p) {
			t.Errorf("lacks %q: %.400s", p, r.Text)
		}
	}
}

func TestReadComesInPagesWhateverTheSizeOfTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := toolsIn(t, dir)
	var b strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	file(t, dir, "huge.txt", b.String())
	r := do("read", object{"path": "huge.txt"})
	wants(t, r, false, "1\tline 1\n", "2000\tline 2000\n", "read it with offset 2001")
	if strings.Contains(r.Text, "line 2001\n") {
		t.Error("a page is longer than it may be")
	}
	wants(t, do("read", object{"path": "huge.txt", "offset": 2001, "limit": 2}), false, "2001\tline 2001\n2002\tline 2002\n[the file of", "offset 2003")
	r = do("read", object{"path": "huge.txt", "offset": 300_000})
	wants(t, r, false, "300000\tline 300000\n")
	if strings.Contains(r.Text, "goes on") {
		t.Error("the last page says that the file goes on")
	}
	wants(t, do("read", object{"path": "huge.txt", "offset": 300_001}), true, "has 300000 lines")
	wants(t, do("read", object{"path": "huge.txt", "offset": -1}), true, "numbers from 1")

	// One line of two mebibytes, and many long ones: a page stays a page.
	file(t, dir, "line.txt", strings.Repeat("y", 2<<20)+"\nnext")
	r = do("read", object{"path": "line.txt"})
	wants(t, r, false, "[the line goes on: 2097152 bytes in all]", "2\tnext\n")
	file(t, dir, "wide.txt", strings.Repeat(strings.Repeat("w", 1500)+"\n", 500))
	if r = do("read", object{"path": "wide.txt"}); len(r.Text) > pageBytes+4000 || !strings.Contains(r.Text, "goes on: read it with offset") {
		t.Errorf("%d bytes", len(r.Text))
	}
	file(t, dir, "empty.txt", "")
	wants(t, do("read", object{"path": "empty.txt"}), false, "is empty")
	file(t, dir, "blank.txt", "\n\nthird\r\n")
	wants(t, do("read", object{"path": "blank.txt"}), false, "1\t\n2\t\n3\tthird\r\n")
}

func TestWhatIsNoTextIsNotShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := toolsIn(t, dir)
	file(t, dir, "a.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	wants(t, do("read", object{"path": "a.png"}), true, "binary file of 16 bytes")
	file(t, dir, "latin.txt", "caf\xe9 one\n")
	wants(t, do("read", object{"path": "latin.txt"}), false, "caf\uFFFD one", "not UTF-8")
	wants(t, do("edit", object{"path": "latin.txt", "old": "one", "new": "two"}), false)
	if content(t, dir, "latin.txt") != "caf\xe9 two\n" {
		t.Error("an edit changes bytes beside it")
	}
	wants(t, do("read", object{"path": "."}), true, "is a directory")
	wants(t, do("read", object{"path": "none"}), true, "no such file")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	wants(t, do("read", object{"path": "pipe"}), true, "no regular file")
	wants(t, do("edit", object{"path": "pipe", "old": "a", "new": "b"}), true, "no regular file")
	wants(t, do("write", object{"path": "pipe", "content": "b"}), true, "no regular file")
	wants(t, do("search", object{"pattern": "two"}), false, "latin.txt:1:")
}

func TestAnEditNeedsItsTextExactlyOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := toolsIn(t, dir)
	const before = "a\nif x {\n\treturn\n}\nb\nif x {\n\treturn\n}\n"
	file(t, dir, "f.go", before)
	if err := os.Chmod(filepath.Join(dir, "f.go"), 0o755); err != nil {
		t.Fatal(err)
	}
	wants(t, do("edit", object{"path": "f.go", "old": "if x {", "new": "if y {"}), true, "2 times, at lines 2, 6", "Nothing was changed")
	wants(t, do("edit", object{"path": "f.go", "old": "if  x {", "new": "q"}), true, "not in f.go", "other blanks")
	wants(t, do("edit", object{"path": "f.go", "old": "nowhere", "new": "q"}), true, "not in f.go", "Read the file again")
	wants(t, do("edit", object{"path": "f.go", "old": "", "new": "q"}), true, "old is empty")
	wants(t, do("edit", object{"path": "f.go", "old": "b", "new": "b"}), true, "the same")
	wants(t, do("edit", object{"path": "f.go", "old": "b"}), true, "no new")
	wants(t, do("write", object{"path": "f.go"}), true, "no content")
	if content(t, dir, "f.go") != before {
		t.Fatal("a refused edit changed the file")
	}
	wants(t, do("edit", object{"path": "f.go", "old": "b\nif x {", "new": "b\nif y {"}), false, "at line 5")
	wants(t, do("edit", object{"path": "f.go", "old": "\treturn\n", "new": "", "all": true}), false, "2 places, lines 3, 7")
	if got := content(t, dir, "f.go"); got != "a\nif x {\n}\nb\nif y {\n}\n" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "f.go")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is lost: %v %v", info.Mode(), err)
	}
	file(t, dir, "crlf.txt", "one\r\ntwo\r\n")
	wants(t, do("edit", object{"path": "crlf.txt", "old": "one\ntwo", "new": "x"}), true, `\r\n`)
}

// INV-38: no file tool leaves the work tree, by no path and no link. The control is the same call on a file within.
func TestFileToolsStayInTheWorkTree(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "tree")
	file(t, base, "secret.txt", "the secret\n")
	file(t, dir, "in.txt", "inside\n")
	do := toolsIn(t, dir)
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../secret.txt", "out")
	link(base, "outdir")
	link("/etc/hostname", "abs")
	link("in.txt", "within")
	for _, path := range []string{"../secret.txt", filepath.Join(base, "secret.txt"), "out", "outdir/secret.txt", "abs", "a/../../secret.txt", "outdir/new.txt"} {
		wants(t, do("read", object{"path": path}), true)
		wants(t, do("write", object{"path": path, "content": "x"}), true)
		wants(t, do("edit", object{"path": path, "old": "secret", "new": "x"}), true)
		if r := do("search", object{"pattern": "secret", "path": path}); !r.Error {
			t.Errorf("search in %s: %s", path, r.Text)
		}
	}
	if content(t, base, "secret.txt") != "the secret\n" || !strings.HasPrefix(content(t, base, "new.txt"), "(") {
		t.Error("something outside was changed")
	}
	if r := do("search", object{"pattern": "secret"}); strings.Contains(r.Text, "the secret") {
		t.Error("search follows a link out of the tree")
	}
	wants(t, do("read", object{"path": "within"}), false, "inside")
	wants(t, do("read", object{"path": filepath.Join(dir, "in.txt")}), false, "inside")
	wants(t, do("write", object{"path": "new/deep/a.txt", "content": "x"}), false)
}

func TestSearchNamesPlacesAndIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := toolsIn(t, dir)
	file(t, dir, "a/one.go", "package a\nfunc Total() {}\n")
	file(t, dir, "b/two.txt", "Total at the end")
	file(t, dir, ".git/x", "Total")
	file(t, dir, "node_modules/m/x", "Total")
	file(t, dir, "bin", "Total\x00")
	r := do("search", object{"pattern": `Total`})
	if r.Text != "a/one.go:2:func Total() {}\nb/two.txt:1:Total at the end\n" {
		t.Errorf("%q", r.Text)
	}
	wants(t, do("search", object{"pattern": "Total", "glob": "*.go"}), false, "a/one.go:2:")
	if r := do("search", object{"pattern": "Total", "glob": "**/*.txt", "path": "b"}); r.Text != "b/two.txt:1:Total at the end\n" {
		t.Errorf("%q", r.Text)
	}
	wants(t, do("search", object{"pattern": "nowhere"}), false, "nothing was found")
	wants(t, do("search", object{"pattern": "(["}), true, "no regular expression")
	wants(t, do("search", object{"pattern": "x", "glob": "[a"}), true, "no pattern of paths")
	wants(t, do("search", object{"pattern": "x", "path": "none"}), true, "no such file")
	file(t, dir, "many.txt", strings.Repeat("hit\n", 5000))
	if r := do("search", object{"pattern": "hit"}); strings.Count(r.Text, "\n") != searchHits+1 || !strings.Contains(r.Text, "something narrower") {
		t.Errorf("%d lines", strings.Count(r.Text, "\n"))
	}
	file(t, dir, "large.txt", strings.Repeat("x", searchFile+1))
	wants(t, do("search", object{"pattern": "nowhere"}), false, "1 files are larger")
}

func TestShellShowsBeginningAndEndAndEndsWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := toolsIn(t, dir)
	r := do("shell", object{"command": "echo first; seq 1 100000; echo last >&2"})
	wants(t, r, false, "exit code 0\nfirst\n", "100000\nlast\n", "bytes are left out")
	if len(r.Text) > headBytes+tailBytes+200 {
		t.Errorf("%d bytes are shown", len(r.Text))
	}
	wants(t, do("shell", object{"command": "printf 'a\\0\\377b'; exit 4"}), true, "exit code 4\na\uFFFD\uFFFDb")
	wants(t, do("shell", object{"command": "kill -9 $$"}), true, "ended by signal 9")
	wants(t, do("shell", object{"command": "cat; pwd"}), false, dir)
	wants(t, do("shell", object{"command": ""}), true, "no command")
	wants(t, do("shell", object{"command": "true", "timeout_seconds": 100_000}), true, "from 1 to 1200")

	// A time-out ends grandchildren too, also where one of them holds the pipe.
	r = do("shell", object{"command": "sleep 3600 & echo $! > pid; echo begun; sleep 3600", "timeout_seconds": 1})
	wants(t, r, true, "ended after 1s, its time limit", "begun")
	pid := strings.TrimSpace(content(t, dir, "pid"))
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z") {
		t.Errorf("the grandchild %s lives: %s", pid, stat)
	}
	// A server in the background does not keep the call waiting.
	wants(t, do("shell", object{"command": "sleep 5 & echo up", "timeout_seconds": 1200}), false, "up")
}

func TestHeadAndTailAreExact(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, headBytes, headBytes + 1, headBytes + tailBytes, headBytes + tailBytes + 1, 5*tailBytes + 7} {
		for _, step := range []int{1 << 20, 777, tailBytes} {
			var all []byte
			h := &headTail{}
			for len(all) < size {
				var p []byte
				for i := 0; i < min(step, size-len(all)); i++ {
					p = append(p, byte('a'+(len(all)+i)%23))
				}
				_, _ = h.Write(p)
				all = append(all, p...)
			}
			want := string(all)
			if over := size - headBytes - tailBytes; over > 0 {
				want = fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", all[:headBytes], over, all[headBytes+over:])
			}
			if h.text() != want {
				t.Errorf("%d bytes in steps of %d: wrong", size, step)
			}
		}
	}
}

// The schemas that models are told are JSON Schemas, and say what the decoding enforces.
func TestTheSchemasOfToolsSayWhatIsDecoded(t *testing.T) {
	t.Parallel()
	do := toolsIn(t, t.TempDir())
	good := map[string]object{
		"read": {"path": "x"}, "write": {"path": "x", "content": ""}, "edit": {"path": "x", "old": "a", "new": "b"},
		"search": {"pattern": "x"}, "shell": {"command": "true"},
	}
	for _, s := range toolSpecs() {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(s.Schema)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("mem:x", doc); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("mem:x")
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		in := map[string]any{}
		for k, v := range good[s.Name] {
			in[k] = v
		}
		if err := schema.Validate(in); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		in["surplus"] = true
		if schema.Validate(in) == nil || !do(s.Name, object(in)).Error {
			t.Errorf("%s: a surplus member is taken", s.Name)
		}
	}
}
