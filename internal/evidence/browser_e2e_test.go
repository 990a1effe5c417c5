//go:build e2e

package evidence

import (
	"bytes"
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
	records := map[string]Record{"done": sample(), "poisoned": poisoned(attacks[0])}
	for _, name := range []string{"overfit", "safety_halt", "stopped_budget"} {
		records[name] = ended(t, name)
	}
	look := func(pages ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{"../../e2e/report/check.mjs", browser, out}, pages...)...)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	var pages []string
	for name, r := range records {
		b, err := Report(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(out, name+".html")
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, file)
	}
	if text, err := look(pages...); err != nil || !strings.Contains(text, " 0 findings") {
		t.Errorf("%v\n%s", err, text)
	}
	// The control has everything that is looked for.
	page, err := Report(sample(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(page, []byte("</body>"), []byte(`<p style="color: #aaa; background: #fff; width: 3000px; font-size: 9px">pale</p><a tabindex="5" href="https://example.com">first</a><img src="gone.png"><script>document.body.append('x')</script></body>`), 1)
	bad = bytes.Replace(bad, []byte("Content-Security-Policy"), []byte("x-no-policy"), 1)
	bad = bytes.Replace(bad, []byte("outline: 3px solid"), []byte("outline: 0 none"), 1)
	file := filepath.Join(t.TempDir(), "control.html")
	if err := os.WriteFile(file, bad, 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := look(file)
	for _, want := range []string{"console: ", "asks for ", "scrolls sideways", "smaller than 12 px", "Tab 1 reaches element", "does not show that it has the focus", "color contrast", "alternative text", "without JavaScript it says something else"} {
		if err == nil || !strings.Contains(text, want) {
			t.Errorf("the control lacks %q:\n%s", want, text)
		}
	}
}
