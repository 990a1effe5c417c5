//go:build e2e

package evidence

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheReportInARealBrowser leaves its screenshots in bin/report, to be looked at.
func TestTheReportInARealBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "google-chrome", "chromium-browser"} {
		if p, err := exec.LookPath(name); err == nil {
			browser = p
			break
		}
	}
	if browser == "" {
		t.Fatal("no Chromium is here. Next: install Debian's chromium, or Chrome")
	}
	out, err := filepath.Abs("../../bin/report")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	shown := change()
	large, flooded := flood()
	flooded = flooded.within()
	records := map[string]Record{"done": sample(), "poisoned": poisoned(attacks[0]), "flood": large}
	changes := map[string]*Change{"done": &shown, "poisoned": altered("\u202e</script>" + attacks[0]), "flood": &flooded}
	for _, name := range []string{"overfit", "safety_halt", "stopped_budget"} {
		records[name] = ended(t, name)
	}
	changes["safety_halt"] = &shown
	look := func(pages ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{"../../e2e/report/check.mjs", browser, out}, pages...)...)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	var pages []string
	for name, r := range records {
		b, err := Report(r, changes[name])
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, lay(t, out, name, r, b))
	}
	if text, err := look(pages...); err != nil || !strings.Contains(text, " 0 findings") {
		t.Errorf("%v\n%s", err, text)
	}
	// The control has everything that is looked for.
	page, err := Report(sample(), &shown)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(page, []byte("</body>"), []byte(`<p style="color: #aaa; background: #fff; width: 3000px; font-size: 9px">pale</p><a tabindex="5" href="https://example.com">first</a><img src="gone.png"><script>document.body.append('x')</script></body>`), 1)
	bad = bytes.Replace(bad, []byte("Content-Security-Policy"), []byte("x-no-policy"), 1)
	bad = bytes.Replace(bad, []byte("outline: 3px solid"), []byte("outline: 0 none"), 1)
	bad = bytes.Replace(bad, []byte("data:application/json;base64,"), []byte("data:application/json;base64,AAAA"), 1)
	text, err := look(lay(t, t.TempDir(), "control", sample(), bad))
	for _, want := range []string{"console: ", "asks for ", "scrolls sideways", "smaller than 12 px", "Tab 1 reaches element", "does not show that it has the focus", "color contrast", "alternative text", "without JavaScript it says something else", "what is saved is not the record"} {
		if err == nil || !strings.Contains(text, want) {
			t.Errorf("the control lacks %q:\n%s", want, text)
		}
	}
}

// lay writes a page, and beside it the record that can be saved from it.
func lay(t *testing.T, dir, name string, r Record, page []byte) string {
	t.Helper()
	record, err := encodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := errors.Join(os.WriteFile(file+".html", page, 0o644), os.WriteFile(file+".record", record, 0o644)); err != nil {
		t.Fatal(err)
	}
	return file + ".html"
}
