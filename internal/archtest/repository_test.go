package archtest

import (
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

func TestTheSecurityModelListsTheTestsOfEachPromise(t *testing.T) {
	t.Parallel()
	doc := read(t, "docs/security-model.md")
	found := promised(t)
	for _, row := range regexp.MustCompile(`(?m)^\| (INV-\d+) \|.*\| ([^|]*) \|$`).FindAllStringSubmatch(doc, -1) {
		id, cell := row[1], row[2]
		listed := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1)
		for _, l := range listed {
			if !slices.Contains(found[id], l[1]) {
				t.Errorf("the security model says that %s is kept by %s, which does not name it", id, l[1])
			}
		}
		for _, f := range found[id] {
			if !strings.Contains(cell, "`"+f+"`") {
				t.Errorf("%s names %s, and the security model does not list it there", f, id)
			}
		}
		delete(found, id)
	}
	for id, files := range found {
		t.Errorf("%s is named by %v and has no row in the security model", id, files)
	}
}
