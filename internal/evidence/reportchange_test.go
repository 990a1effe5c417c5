package evidence

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xhtml "golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/money"
)

// reported writes r, c and the page as a run does, and gives what then lies there.
func reported(t *testing.T, r Record, c Change, red *Redactor) (dir, page string) {
	t.Helper()
	dir = t.TempDir()
	r, err := Write(dir, r, red)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteChange(dir, r, c, red); err != nil {
		t.Fatal(err)
	}
	return dir, anew(t, dir)
}

// anew writes the page of a directory, as `proctor report` does.
func anew(t *testing.T, dir string) string {
	t.Helper()
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteReport(dir, r); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheReportShowsTheChangeAsText(t *testing.T) {
	t.Parallel()
	_, page := reported(t, sample(), change(), nil)
	said := words([]byte(page))
	for _, want := range []string{
		"cart/total.go", "-\treturn sum(c) - c.Discount - c.Discount", "+\t\tn -= c.Discount", "@@ -8 +8 @@", "\\ no newline at the end of the file",
		"it becomes executable (mode 100644 → 100755)", "becomes executable", "git diff bbbbbbbbbb 2222222222", ChangeFile,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	// A finding stands below its line: the name of line 12, which is the fifth on the new side.
	if !regexp.MustCompile(`<td>12<td>&#43;\t}\s*<tr class="f"><td><td><span class="pill ">clarity</span> the name could say more`).MatchString(page) {
		i := strings.LastIndex(page, "the name could say more")
		t.Errorf("the finding does not stand at its line: %q", page[i-200:i+40])
	}
	if strings.Contains(said, "does not lie beside") {
		t.Error("says that the change is not there")
	}
	// One that points nowhere in the text stands above it, one of a file that is not shown in the list of findings alone.
	r := sample()
	r.Ticks[1].Review.Findings[0].Line = 400
	if _, page := reported(t, r, change(), nil); !strings.Contains(words([]byte(page)), "Line 400: clarity the name could say more") {
		t.Error("a finding of a line that is not shown is lost")
	}
}

func TestAReportWithoutTheChangeSaysSo(t *testing.T) {
	t.Parallel()
	dir, page := reported(t, sample(), change(), nil)
	const missing = "The text of the change does not lie beside this record"
	if strings.Contains(page, missing) {
		t.Error("control: it is there")
	}
	beside := filepath.Join(dir, ChangeFile)
	good, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ text, want string }{
		"of another run":  {strings.Replace(string(good), `"run":"run-42-1"`, `"run":"run-42-2"`, 1), "is not of this run's commit"},
		"of another head": {strings.ReplaceAll(string(good), hexid("2", 40), hexid("3", 40)), "is not of this run's commit"},
		"newer":           {strings.Replace(string(good), `"schema":1`, `"schema":2`, 1), "use a newer proctor"},
		"torn":            {string(good[:len(good)/2]), "is none of ours"},
		"endless":         {strings.Repeat(" ", maxChangeFile+1), "is larger than 4 MiB"},
	} {
		if err := os.WriteFile(beside, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		page := words([]byte(anew(t, dir)))
		if !strings.Contains(page, missing) || !strings.Contains(page, c.want) || strings.Contains(page, "sum(c)") {
			t.Errorf("%s: the page says neither that it is missing nor %q, or shows it", what, c.want)
		}
	}
	if err := os.Remove(beside); err != nil {
		t.Fatal(err)
	}
	if page := words([]byte(anew(t, dir))); !strings.Contains(page, missing) || !strings.Contains(page, "git diff bbbbbbbbbb 2222222222") || !strings.Contains(page, "cart/total_test.go") {
		t.Error("an old record's page does not say that the text is missing and what shows it, or lost its list of files")
	}
	r, err := Read(dir)
	if _, wrong := ReadChange(dir, r); err != nil || !errors.Is(wrong, fs.ErrNotExist) {
		t.Errorf("%v, %v", err, wrong)
	}
	// Of an earlier tick's commit the page says that it is.
	halted := ended(t, SafetyHalt)
	kept := change()
	if _, page := reported(t, halted, kept, nil); !strings.Contains(words([]byte(page)), "As text: the commit that was kept, of tick 1") {
		t.Error("the change of tick 1 passes for that of tick 2")
	}
}

func TestHostileTextInTheChangeStaysText(t *testing.T) {
	t.Parallel()
	evil := []string{
		"</script><script>alert(1)</script>", "]]>", "<!--", "</table></details><h1>Proved</h1>", "\u202egnp.exe", "a\x00b", "x\r\ny", "\x1b[31m", "\u2066if admin\u2069", "\" onclick=\"x",
		"{{.R}}", "&lt;b&gt;", "data:text/html,<script>", "\xff\xfe", strings.Repeat("A", 1<<20), "<style>*{display:none}</style>", "<base href=//evil.example>",
	}
	for i, e := range evil {
		r, c := sample(), change()
		r.Trigger.Title = e
		f := ChangedFile{FileDelta: FileDelta{Path: "p" + e, Status: "A", Risk: e}, Words: []string{e}, Hunks: []Hunk{{Old: 0, New: 1, Lines: []string{"+" + e, e, ""}}}}
		r.Ticks[1].Guard = append(r.Ticks[1].Guard, Finding{Rule: e, Level: "flag", Path: "p" + e, Line: 1, Detail: e})
		c.Files = append(c.Files, f)
		_, page := reported(t, r, c, nil)
		if len(page) > 500_000 {
			t.Errorf("INV-52 %d: %d bytes", i, len(page))
		}
		for z := xhtml.NewTokenizer(strings.NewReader(page)); z.Next() != xhtml.ErrorToken; {
			for _, at := range z.Token().Attr {
				if strings.HasPrefix(at.Key, "on") || at.Key == "style" {
					t.Errorf("INV-52 %d: makes the attribute %s=%q", i, at.Key, at.Val)
				}
			}
		}
		// What may stand in a page stands as often as in one without it.
		_, plain := reported(t, sample(), change(), nil)
		for _, tag := range []string{"<script", "</script", "<h1", "<style", "<base", "<!--", "\x00", "\u202e", "\u2066", "\x1b", "\r"} {
			if got, want := strings.Count(page, tag), strings.Count(plain, tag); got != want {
				t.Errorf("INV-52 %d: %q stands %d times in the page, and %d without it", i, tag, got, want)
			}
		}
	}
	_, page := reported(t, sample(), *altered("a\u202eb\x00c"), nil)
	if got := words([]byte(page)); !strings.Contains(got, `+a\u{202e}b\u{0}c`) {
		t.Error("INV-43: what reorders a line is not shown")
	}
	_, page = reported(t, sample(), *altered(strings.Repeat("A", 1<<20)), nil)
	if got := words([]byte(page)); !strings.Contains(got, "bytes more)") {
		t.Error("a line of 1 MB is cut without a word")
	}
}

// flood is a record and a change that are as large as they come.
func flood() (Record, Change) {
	r, c := sample(), change()
	for i := range 300 {
		d := FileDelta{Path: fmt.Sprintf("src/module%04d/component.go", i), Status: "M", Added: 12 + i, Removed: 3}
		r.Ticks[1].Files = append(r.Ticks[1].Files, d)
	}
	r.Ticks[1].Files, r.Ticks[1].FilesCut = r.Ticks[1].Files[:300], 4700
	for i := range 5000 {
		f := ChangedFile{FileDelta: FileDelta{Path: fmt.Sprintf("src/module%04d/component.go", i), Status: "M", Added: 12, Removed: 3}}
		h := Hunk{Old: 1, New: 1}
		for k := range 12 + i%200 {
			h.Lines = append(h.Lines, fmt.Sprintf("+\tif x := <-values[%d]; x > %d && ok {", i, k))
		}
		f.Hunks = append(f.Hunks, h)
		c.Files = append(c.Files, f)
	}
	first := r.Ticks[0]
	first.Agent.Millis, first.Gates = 200, []Gate{first.Gates[0]}
	first.Gates[0].Millis = 40
	var ticks []Tick
	for i := range 199 {
		t := first
		t.N, t.Millis, t.Started = i+1, 400, began.Add(ms(int64(400*i)))
		t.Gates = []Gate{first.Gates[0]}
		t.Gates[0].At = int64(400*i + 250)
		ticks = append(ticks, t)
	}
	last := r.Ticks[1]
	last.N, last.Started, last.Millis = 200, began.Add(ms(400*199)), 400
	r.Ticks, r.Calls = append(ticks, last), nil
	for i := range 2000 {
		r.Calls = append(r.Calls, Call{Tick: i/10 + 1, Purpose: []string{"agent", "agent", "review"}[i%3], Model: "model-large", Status: 200, Input: int64(1000 + i), Output: 90, CacheRead: 12345, CacheWrite: 17,
			CostUSD: money.USD(1_234_567 + i), Priced: "usage", At: int64(40*i + 1), Millis: 30})
	}
	nameLogs(&r)
	r.Ceilings.Ticks = 200
	r.Settle(0)
	return normal(r), c
}

func TestTheLargestRunMakesAPageBelowHalfAMegabyte(t *testing.T) {
	t.Parallel()
	r, c := flood()
	dir, page := reported(t, r, c, nil)
	said := words([]byte(page))
	t.Logf("%d bytes of page, change and record", len(page))
	if len(page) > 500_000 || len(page) < 250_000 {
		t.Errorf("INV-52: %d bytes", len(page))
	}
	for _, want := range []string{"files more are not shown here.", "of this file are not shown here.", "200 ticks", "2000 calls", "proctor-run.json.gz"} {
		if !strings.Contains(said, want) {
			t.Errorf("INV-52: does not say %q", want)
		}
	}
	kept, err := ReadChange(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i := range kept.Files {
		total += kept.Files[i].size()
	}
	if total > maxChangeText || len(kept.Files) != maxChangeFiles || kept.FilesCut != len(c.Files)-maxChangeFiles {
		t.Errorf("INV-52: %d bytes of text in %d files, %d cut", total, len(kept.Files), kept.FilesCut)
	}
	// What is saved from the page is the record to the byte, though compressed.
	m := regexp.MustCompile(`download="proctor-run\.json\.gz" href="data:application/gzip;base64,([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the record cannot be saved from the page")
	}
	packed, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(m[1], "&#43;", "+"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	want, wrong := os.ReadFile(filepath.Join(dir, RecordFile))
	if err != nil || wrong != nil || !bytes.Equal(got, want) {
		t.Errorf("what is saved differs from %s: %v, %v", RecordFile, err, wrong)
	}
}

func TestListsGiveWayToTheChange(t *testing.T) {
	t.Parallel()
	// Each alone fills a page.
	_, c := flood()
	evil := strings.Repeat("<&>\"'", 300)
	for i := range c.Files {
		c.Files[i].Path = fmt.Sprintf("%d%s", i, evil)
		c.Files[i].Risk = evil
	}
	c = c.within()
	page, err := Report(huge(), &c)
	if err != nil || len(page) > 500_000 {
		t.Fatalf("INV-52: %d bytes, %v", len(page), err)
	}
	t.Logf("%d bytes", len(page))
	said := words(page)
	for _, want := range []string{"ticks more are in", "notes more are in", "files more are not shown here", "if x := <-values[", "Save the record"} {
		if !strings.Contains(said, want) {
			t.Errorf("INV-52: does not say %q", want)
		}
	}
}

func TestTheLongestFilesAreCutFirst(t *testing.T) {
	t.Parallel()
	line := "+" + strings.Repeat("x", 99)
	long := Hunk{Lines: []string{}}
	for range 3000 {
		long.Lines = append(long.Lines, line)
	}
	c := Change{Files: []ChangedFile{
		{FileDelta: FileDelta{Path: "long"}, Hunks: []Hunk{long, long}},
		{FileDelta: FileDelta{Path: "short"}, Hunks: []Hunk{{Lines: []string{line, line}}}},
	}}.within()
	if n := c.Files[0].size(); n > maxChangeText || n < maxChangeText-300 || c.Files[0].LinesCut+n/100 != 6000 {
		t.Errorf("the long file has %d bytes and %d lines cut", n, c.Files[0].LinesCut)
	}
	if c.Files[1].size() != 200 || c.Files[1].LinesCut != 0 {
		t.Errorf("the short file was cut: %+v", c.Files[1])
	}
	for _, x := range []struct {
		sizes       []int
		total, want int
	}{{nil, 10, 1 << 62}, {[]int{3, 3}, 10, 1 << 62}, {[]int{3, 30}, 10, 7}, {[]int{30, 30, 1}, 11, 5}, {[]int{9, 9}, 0, 0}} {
		if got := fair(x.sizes, x.total); got != x.want && (got < x.want || x.want != 1<<62) {
			t.Errorf("fair(%v, %d) = %d, want %d", x.sizes, x.total, got, x.want)
		}
	}
}

func TestSecretsAreTakenOutOfTheChange(t *testing.T) {
	t.Parallel()
	secret := "hunter2-correct-horse"
	token := "ghp_" + strings.Repeat("a1B2", 9)
	c := change()
	c.Files[0].Hunks[0].Lines = append(c.Files[0].Hunks[0].Lines, "+key := \""+secret+"\"", "-was := \""+base64.StdEncoding.EncodeToString([]byte(secret))+"\"", " t := "+token)
	c.Files[0].Words, c.Files[1].Path = []string{secret}, "keys/"+secret
	text := func(red *Redactor) string {
		dir, page := reported(t, sample(), c, red)
		b, err := os.ReadFile(filepath.Join(dir, ChangeFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + page
	}
	got := text(NewRedactor(secret))
	for _, s := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), token} {
		if strings.Contains(got, s) {
			t.Errorf("INV-34: the change or its page holds %q", s)
		}
	}
	if control := text(nil); !strings.Contains(control, secret) || strings.Contains(control, token) {
		t.Error("control: a value that nobody named is in neither, or the shape of a token was not seen")
	}
	// A line in which the policy saw a credential is hidden whole, and no other.
	r := sample()
	r.Ticks[1].Guard = []Finding{{Rule: "secret", Level: "flag", Path: "cart/total.go", Line: 10, Detail: "looks like a credential"}}
	_, page := reported(t, r, change(), nil)
	if said := words([]byte(page)); strings.Contains(said, "n -= c.Discount") != true || strings.Contains(said, "if c.Member") || !strings.Contains(said, "+[redacted]") {
		t.Errorf("INV-34: a line with a finding of a credential is shown, or another is hidden")
	}
}

func TestASecretOverSeveralLinesIsMaskedLineForLine(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN PRIVATE KEY-----\nMIIabc\r\n\nMIIdef\n-----END PRIVATE KEY-----\n"
	for in, want := range map[string]string{
		"a\n" + key + "b":      "a\n-----BEGIN PRIVATE KEY-----\n[redacted]\r\n\n[redacted]\n-----END PRIVATE KEY-----\nb",
		"x two-words-long y\n": "x [redacted] y\n", "nothing\n": "nothing\n", "": "",
		"dHdvLXdv\n  cmRzLWxvbmc=\n": "[redacted]\n[redacted]c=\n",
	} {
		if got := string(NewRedactor("two-words-long").Mask([]byte(in))); got != want {
			t.Errorf("INV-34: Mask(%q) = %q, want %q", in, got, want)
		}
		if got := (*Redactor)(nil).Mask([]byte(in)); bytes.Count(got, []byte("\n")) != strings.Count(in, "\n") {
			t.Errorf("Mask(%q) moves lines: %q", in, got)
		}
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestTheChartsAreToScale(t *testing.T) {
	t.Parallel()
	r := sample()
	v := r.timeline()
	got := map[string]string{}
	for _, l := range v.Lanes {
		for _, b := range l.Bars {
			got[l.Name+" "+b.Class] = b.Path
		}
	}
	// 94 s are 1000 units: 30 s of the agent from second 2 are 319 from 21.
	want := map[string]string{
		"Ticks tick": "M21 0h436v10h-436z", "Ticks tock": "M468 0h510v10h-510z",
		"Agent agent":        "M21 0h319v10h-319zM468 0h351v10h-351z",
		"Gates good":         "M6 0h8v10h-8zM345 0h9v10h-9zM835 0h8v10h-8zM844 0h5v10h-5z",
		"Model calls agent":  "M53 0h42v10h-42zM531 0h54v10h-54z",
		"Model calls review": "M361 0h10v10h-10zM851 0h8v10h-8z",
		"Proof proof":        "M371 0h86v10h-86zM859 0h119v10h-119z",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s := r.spent(200)
	if want := "M0 200H95V121H371V115H585V6H859V0H1000"; s.Line != want {
		t.Errorf("cost: %s, want %s", s.Line, want)
	}
	if s.Ceiling != "" || !strings.Contains(s.Note, "1.6 % of it was spent") || s.Agent != "M95 200v-12M585 200v-12" {
		t.Errorf("%+v", s)
	}
	r.Ceilings.CostUSD = 100_000_000
	if s := r.spent(200); s.Ceiling != "$0.1000" || s.CeilingAt != 0 || s.Top != "$0.1000" || s.Note != "" {
		t.Errorf("with a ceiling near: %+v", s)
	}
	r.Ceilings.CostUSD = r.Totals.CostUSD / 2
	if s := r.spent(200); s.Ceiling != "$0.0388" || s.CeilingAt != 100 || s.Top != "$0.0776" {
		t.Errorf("with a ceiling that the last call overshot: %+v", s)
	}
	if s.Total.Calls != 4 || s.Total.Input != 33100 || s.Total.Cost != r.Totals.CostUSD.String() || len(s.Rows) != 2 || s.Rows[1].Sum != s.Total.Cost {
		t.Errorf("INV-54: %+v", s)
	}
	// A record that does not say when things began is drawn as far as it goes, and says so.
	for i := range r.Calls {
		r.Calls[i].At = 0
	}
	for i := range r.Ticks {
		for k := range r.Ticks[i].Gates {
			r.Ticks[i].Gates[k].At = 0
		}
	}
	r.Baseline[0].At = 0
	if s, v := r.spent(200), r.timeline(); s.Line != "M0 200H250V138H500V134H750V49H1000V45H1000" && !strings.Contains(s.Note, "stand in their order") || len(v.Lanes) != 2 || v.Note == "" {
		t.Errorf("without times: %+v, %+v", s, v)
	}
}

func TestTimesOfHeldOutGatesAreOnNoPage(t *testing.T) {
	t.Parallel()
	r := sample()
	with, err := Report(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Ticks {
		for k := range r.Ticks[i].Proof {
			r.Ticks[i].Proof[k].Millis, r.Ticks[i].Proof[k].At = 0, 0
		}
	}
	r.Baseline[1].Millis = 0
	without, err := Report(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`<p><a class="get".*?</p>`)
	if a, b := link.ReplaceAllString(string(with), ""), link.ReplaceAllString(string(without), ""); a != b {
		t.Errorf("INV-27: the page shows how long the gates of a proof took:\n%s", cmp.Diff(a, b))
	}
}

func FuzzAChangeOfAnybodysMakesAPage(f *testing.F) {
	r := sample()
	for _, c := range []Change{change(), *altered("</script>\u202e\x00"), {Schema: 1, Run: r.Run, Base: r.Base, Head: *r.Head, Files: []ChangedFile{{Hunks: []Hunk{{Old: -1, New: 1 << 62, Lines: []string{"", "x", "+"}}, {}}}}}} {
		b, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeChange(b, r)
		if err != nil {
			return
		}
		page, err := Report(r, &c)
		if err != nil || len(page) > 500_000 {
			t.Fatalf("INV-52: %d bytes, %v", len(page), err)
		}
		if bytes.Contains(page, []byte("<script")) || bytes.Contains(page, []byte("<!--")) || bytes.ContainsAny(page, "\x00\x1b\u202e") {
			t.Errorf("INV-52: %q is passed on", b)
		}
	})
}
