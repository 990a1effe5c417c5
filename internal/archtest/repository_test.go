package archtest

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"-C", "../..", "ls-files", "-z", "--"}, patterns...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNothingOfOneMachineIsCommitted(t *testing.T) {
	t.Parallel()
	// Built from parts, so that this file does not find itself.
	bad := regexp.MustCompile("/wor" + "k/|/ro" + "ot/\\.|proxy\\.gol" + "ang\\.org|registry\\.np" + "mjs|deb\\.deb" + "ian\\.org")
	if !bad.MatchString("/wor" + "k/main") {
		t.Fatal("the pattern finds nothing")
	}
	for _, f := range tracked(t) {
		if strings.HasSuffix(f, "go.sum") {
			continue
		}
		for i, line := range strings.Split(read(t, f), "\n") {
			if bad.MatchString(line) {
				t.Errorf("%s:%d: %s", f, i+1, strings.TrimSpace(line))
			}
		}
	}
}

var promise = regexp.MustCompile(`INV-(\d+)`)

// promised maps each promise id to the test files that name it.
func promised(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, f := range tracked(t, "*_test.go") {
		if strings.Contains(f, "archtest") {
			continue
		}
		for _, id := range promise.FindAllString(read(t, f), -1) {
			if !slices.Contains(found[id], f) {
				found[id] = append(found[id], f)
			}
		}
	}
	return found
}

// row is one line of the security model's table: id, promise, tests.
var row = regexp.MustCompile(`(?m)^\| (INV-\d+) \| (.*) \| ([^|]*) \|$`)

var update = flag.Bool("update", false, "write the list of tests into docs/security-model.md")

// TestTheSecurityModelListsTheTestsOfEachPromise keeps the last column of the table in step with the tests; run
// it with -update to write it.
func TestTheSecurityModelListsTheTestsOfEachPromise(t *testing.T) {
	t.Parallel()
	doc := read(t, "docs/security-model.md")
	found := promised(t)
	known := map[string]bool{}
	want := row.ReplaceAllStringFunc(doc, func(line string) string {
		m := row.FindStringSubmatch(line)
		known[m[1]] = true
		return "| " + m[1] + " | " + m[2] + " | " + cell(found[m[1]]) + " |"
	})
	for id, files := range found {
		if !known[id] {
			t.Errorf("%s is named by %v and has no row in the security model", id, files)
		}
	}
	if *update {
		if err := os.WriteFile("../../docs/security-model.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != doc {
		t.Error("docs/security-model.md lists other tests than there are. Next: go test ./internal/archtest -run SecurityModel -update")
	}
}

func cell(files []string) string {
	if len(files) == 0 {
		return "none yet"
	}
	slices.Sort(files)
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = "`" + f + "`"
	}
	return strings.Join(quoted, ", ")
}

// A fresh machine has neither Debian's lists of packages nor what the later steps call.
func TestWhatTheEndToEndTestsTakeFromDebianIsInstalledFirst(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	_, recipe, found := strings.Cut(makefile, "\ne2e-deps:")
	lines := strings.Split(recipe, "\n")
	if !found || len(lines) < 2 || !strings.Contains(lines[1], "apt-get update") || !strings.Contains(lines[1], "$(DEBIAN)") {
		t.Error("Makefile: e2e-deps does not begin with apt-get update and $(DEBIAN)")
	}
	packages := regexp.MustCompile(`(?m)^DEBIAN *= *(.*)$`).FindStringSubmatch(makefile)
	for _, p := range []string{"podman", "default-jre-headless", "openssl"} {
		if packages == nil || !slices.Contains(strings.Fields(packages[1]), p) {
			t.Errorf("Makefile: DEBIAN lacks %s, which make e2e needs", p)
		}
	}
	if strings.Contains(read(t, "e2e/dynamodb/fetch"), "apt-get") {
		t.Error("e2e/dynamodb/fetch installs packages: that is DEBIAN's in the Makefile")
	}
}
