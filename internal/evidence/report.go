package evidence

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

//go:embed report.gohtml
var reportPage string

//go:embed report.css
var reportStyle string

// What bounds the page, in bytes but for rows: the whole, the text of the change, and the rows of each list. Where the
// whole does not fit, lists get shorter; in a page full of lists the change still gets a share.
const (
	maxReport       = 480_000
	maxReportChange = 200_000
	minReportChange = 80_000
)

// recordSlot stands in the page for the record, until it is known how much of it there is room for. Files of the change
// have slots of their own.
const recordSlot = template.HTML("<!--record-->")

// reportRows is how many rows of each list are tried.
var reportRows = [...]int{200, 100, 50, 20, 8}

// reportView is what the page shows: the record, the text of the change, and what is worked out from both.
type reportView struct {
	R                                                        Record
	WhoSays                                                  string
	T                                                        Terminal
	Policy                                                   string
	CSS                                                      template.CSS
	Tone, Verdict, Goal, HeldOut, First, Cost                string
	Gates                                                    []Gate
	Ticks                                                    []reportTick
	Findings                                                 []Finding
	Files                                                    []reportFile
	FileCount, Added, Removed                                int
	Change                                                   *reportChange
	Time                                                     *reportTime
	Spent                                                    *reportSpent
	Spends                                                   []reportSpend
	On, Off, Looser                                          []Enforced
	Notes                                                    []string
	Items                                                    []PlanItem
	Why, Next                                                []part
	Provenance                                               []fact
	TicksLeft, FindingsLeft, FilesLeft, NotesLeft, ItemsLeft string
	RecordFile                                               string
	RecordSlot                                               template.HTML
	Egress                                                   string
}

type reportTick struct {
	Tick
	Tone, AgentTone, AgentWord, Verdict, Said string
	Bars                                      []bar
}

type reportFile struct {
	FileDelta
	Add, Del int // of 72
}

type reportSpend struct {
	Purpose, Model           string
	Calls                    int
	Input, Output, CacheRead int64
	Cost                     string
}

// Report is the run as one self-contained page: no script, no network, light and dark. Like every view it says nothing
// that the record does not, but for the text of the change, which lies beside the record; nil: it does not.
func Report(r Record, c *Change) ([]byte, error) {
	t, err := template.New("report").Funcs(reportFuncs()).Parse(reportPage)
	if err != nil {
		return nil, fmt.Errorf("parse report page: %w", err)
	}
	record, err := newDownload(r)
	if err != nil {
		return nil, err
	}
	for i, rows := range reportRows {
		v := newReportView(r, c, rows)
		page, err := execute(t, "report", v)
		if err != nil {
			return nil, err
		}
		room := maxReport - len(page)
		if last := i == len(reportRows)-1; !last && room < record.cost()+min(v.Change.size(), minReportChange) {
			continue
		}
		if record.cost() <= room {
			room -= record.cost()
		} else {
			record = download{}
		}
		saving, err := execute(t, "save", record)
		if err != nil {
			return nil, err
		}
		bodies, err := v.Change.bodies(t, min(max(room, 0), maxReportChange))
		if err != nil {
			return nil, err
		}
		// Nobody's text holds a slot: the template escapes what begins one.
		fill := strings.NewReplacer(append(bodies, string(recordSlot), string(saving))...)
		return []byte(fill.Replace(string(page))), nil
	}
	return nil, errors.New("render report: no number of rows is tried")
}

func execute(t *template.Template, name string, v any) ([]byte, error) {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, v); err != nil {
		return nil, fmt.Errorf("render report: %w", err)
	}
	return b.Bytes(), nil
}

// WriteReport writes the page to ReportFile in dir, with the change that lies there. r is redacted already when it comes from Write.
func WriteReport(dir string, r Record) error {
	change, err := ReadChange(dir, r)
	c := &change
	if err != nil {
		c = nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Notes = append(slices.Clone(r.Notes), "the change is not shown as text: "+err.Error())
	}
	b, err := Report(r, c)
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, ReportFile), b)
}

func reportFuncs() template.FuncMap {
	return template.FuncMap{
		"text": inert.Visible, "took": took, "short": short, "place": place, "count": count,
		"bytes": sizeWord, "grouped": grouped,
		"code":     func(s string, n int) string { return inert.Visible(inert.OneLine(s), n) },
		"label":    func(g Gate) string { return g.label() },
		"result":   func(g Gate) string { return g.result() },
		"change":   changeWord,
		"tone":     gateTone,
		"said":     func(i PlanItem) string { return i.said() },
		"itemTone": itemTone,
		"level":    levelTone,
		"risk":     riskTone,
		"href": func(s string) string {
			if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
				return ""
			}
			return s
		},
	}
}

// sizeWord is a number of bytes for people, in the units of a network's bill.
func sizeWord(n int64) string {
	unit := int64(1)
	for _, name := range []string{"B", "kB", "MB"} {
		if n < 1000*unit {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(unit)), ".0") + " " + name
		}
		unit *= 1000
	}
	return fmt.Sprintf("%.1f GB", float64(n)/float64(unit))
}

// grouped is a number with its thousands apart, by a space that does not break.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// part is a run of words, or an address on the forge's own host.
type part struct{ Text, Href string }

// parts splits prose so that such addresses can be clicked.
func (r Record) parts(s string) []part {
	var out []part
	text := ""
	for _, w := range strings.Split(inert.Visible(s, 2*maxDetail), " ") {
		bare := strings.TrimRight(w, ".,;:")
		if !r.ownAddress(bare) {
			text += w + " "
			continue
		}
		out = append(out, part{Text: text}, part{Text: bare, Href: bare})
		text = w[len(bare):] + " "
	}
	return append(out, part{Text: strings.TrimRight(text, " ")})
}

func newReportView(r Record, c *Change, rows int) reportView {
	sum := sha256.Sum256([]byte(reportStyle))
	v := reportView{
		R: r, T: r.terminal(), CSS: template.CSS(reportStyle), Verdict: r.verdict(), Goal: r.goal(), Cost: r.cost(), Gates: r.deciding(),
		// Nothing loads and nothing runs; the one style sheet is named by its digest.
		Policy:     "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Tone:       terminalTone(r.terminal()),
		HeldOut:    r.heldOut(func(s string) string { return inert.Visible(s, maxTitle) }),
		First:      r.addedTests(),
		Provenance: r.provenance(), Why: r.parts(r.Reason), Next: r.parts(r.Next),
		RecordFile: RecordFile, RecordSlot: recordSlot,
	}
	if r.Plan != nil {
		v.Items = top(r.Plan.Items, rows, "item", &v.ItemsLeft)
	}
	v.R.Removed = top(r.Removed, rows, "", nil)
	v.R.Risk.Why = top(r.Risk.Why, rows, "", nil)
	v.Notes = top(r.Notes, rows, "note", &v.NotesLeft)
	for _, t := range top(r.Ticks, rows, "tick", &v.TicksLeft) {
		v.Ticks = append(v.Ticks, newReportTick(r, t, rows))
	}
	for _, e := range r.Confinement {
		switch {
		case e.Active:
			v.On = append(v.On, e)
		case e.missing():
			v.Off = append(v.Off, e)
		default:
			v.Looser = append(v.Looser, e)
		}
	}
	v.WhoSays = r.whoSays()
	if r.Egress != nil {
		v.Egress = r.Egress.summary(func(s string) string { return s })
	}
	for _, s := range r.spends() {
		v.Spends = append(v.Spends, reportSpend{s.purpose, s.model, s.calls, s.input, s.output, s.cacheRead, s.cost.String()})
	}
	v.Time, v.Spent = r.timeline(), r.spent(rows)
	v.Change = newReportChange(r, c, rows)
	if t := r.last(); t != nil {
		v.Findings = top(t.findings(), rows, "finding", &v.FindingsLeft)
		v.FileCount = len(t.Files) + t.FilesCut
		most := 1
		for _, f := range t.Files {
			v.Added += f.Added
			v.Removed += f.Removed
			most = max(most, f.Added+f.Removed)
		}
		for _, f := range top(t.Files, rows, "file", &v.FilesLeft) {
			v.Files = append(v.Files, reportFile{f, share(f.Added, most), share(f.Removed, most)})
		}
	}
	return v
}

// share is n of most as part of the 72 units of a bar; what is not nothing shows.
func share(n, most int) int {
	if n == 0 {
		return 0
	}
	return max(2, n*72/most)
}

func newReportTick(r Record, t Tick, rows int) reportTick {
	v := reportTick{Tick: t, Tone: "bad", AgentTone: gateTone(outcomeMark(t.Agent.Outcome)), Bars: r.bars(t)}
	v.AgentWord, v.Verdict = strings.ReplaceAll(t.Agent.Outcome, "_", " "), strings.ReplaceAll(t.Verdict, "_", " ")
	if (r.Terminal == Done || r.Terminal == PublishFailed) && r.Head != nil && t.Commit != nil && *t.Commit == *r.Head {
		v.Tone = "good"
	}
	from := max(0, t.Started.Sub(r.Started).Milliseconds())
	v.Said = fmt.Sprintf("from %s to %s of %s", took(from), took(from+max(0, t.Millis)), took(r.Totals.Millis))
	v.Guard = top(t.Guard, min(rows, 5), "", nil)
	return v
}

// top is the first rows of s; left says how many more there are.
func top[T any](s []T, rows int, noun string, left *string) []T {
	if len(s) <= rows {
		return s
	}
	if left != nil {
		*left = fmt.Sprintf("%s more are in %s.", count(len(s)-rows, noun), RecordFile)
	}
	return s[:rows]
}

func terminalTone(t Terminal) string {
	switch t.Exit {
	case 0:
		return "good"
	case 4, 6, 1, 7:
		return "bad"
	}
	return "warn"
}

func gateTone(status string) string {
	switch status {
	case "passed":
		return "good"
	case "failed":
		return "bad"
	case "broken", "timed_out", "stopped":
		return "warn"
	}
	return ""
}

func levelTone(level string) string {
	switch level {
	case "halt", "block":
		return "bad"
	case "flag":
		return "warn"
	}
	return ""
}

func itemTone(i PlanItem) string {
	switch i.Status {
	case "proved", "before":
		return "good"
	case "claimed", "open":
		return "bad"
	}
	return "warn"
}

func riskTone(risk string) string {
	switch risk {
	case "low":
		return "good"
	case "high":
		return "bad"
	}
	return "warn"
}
