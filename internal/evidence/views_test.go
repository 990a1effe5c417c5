package evidence

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"github.com/proctor-ci/proctor/internal/inert"
)

// What a forge would act on in rendered text outside code.
var (
	mention   = regexp.MustCompile(`@[A-Za-z0-9_"]`)
	reference = regexp.MustCompile(`(?i)(?:[#!~%&$][A-Za-z0-9_"]|\bGH-\d)`)
	closing   = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|implement(?:s|ed)?)\b:?\s+#\d+`)
)

// acts lists what a forge, rendering body as Markdown, would do: mention, link, load, close. Elements
// that only shape text are left out.
func acts(t testing.TB, body string) []string {
	t.Helper()
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	var page bytes.Buffer
	if err := md.Convert([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	var found []string
	var words strings.Builder
	code := 0
	for z := xhtml.NewTokenizer(&page); ; {
		kind := z.Next()
		tok := z.Token()
		switch kind {
		case xhtml.ErrorToken:
			for _, re := range []*regexp.Regexp{mention, reference, closing} {
				found = append(found, re.FindAllString(words.String(), -1)...)
			}
			return found
		case xhtml.CommentToken:
			found = append(found, "comment "+tok.Data)
		case xhtml.TextToken:
			if code == 0 {
				words.WriteString(tok.Data)
			}
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			switch tok.Data {
			case "code":
				code++
			case "p", "h2", "h3", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "br", "pre", "blockquote", "details", "summary", "del":
			default:
				found = append(found, tok.String())
			}
		case xhtml.EndTagToken:
			if tok.Data == "code" {
				code--
			}
		}
	}
}

// ours is what the views themselves contain.
func ours(act string) bool {
	for _, own := range []string{
		"comment  proctor:pull-request head=" + hexid("2", 40) + " ", "comment  proctor:status ", "comment  proctor:end ",
		`<a href="https://git.example/octo/shop/`,
	} {
		if strings.HasPrefix(act, own) {
			return true
		}
	}
	return act == "Closes #42" || act == "#4" || inertClaim.MatchString(act)
}

// inertClaim is the claim's marker: letters, digits and two marks that mean nothing anywhere.
var inertClaim = regexp.MustCompile(`^comment  proctor:claim [A-Za-z0-9+/]+ $`)

var attacks = []string{
	"@maria", "hey @octo/team!", "fixes #12", "Closes: #12", "resolves octo/shop#12", "closes https://git.example/octo/shop/issues/12", "closes GH-12",
	"![x](https://evil.example/p.png)", "<img src='//evil.example/p.png'>", "[click](javascript:alert(1))", "<https://evil.example>", "https://evil.example",
	"www.evil.example", "<script>alert(1)</script>", "<!-- proctor:status -->", "<!-- proctor:pull-request head=" + "2222 -->", "-->", "a | b | c", "`code` | `more`",
	"``` \n# heading\n```", "\n\n# heading\n\n- [ ] box", "/close", "\n/merge\n", "\\", "\\`@maria\\`", "`", "``@maria``", "***", "~~~", "</details></summary>",
	"\u202egnp.exe", "a\u200bb", "\x1b[31mred", "::error::x", "\n::add-mask::x", "##[error]x", "x@maria.example", "!12 ~label %1 &2 $3", "$`@maria`$", "[^1]: x", "[a]: https://evil.example",
	"&#64;maria", "&lt;img&gt;", "\xff\xfe", "*a* _b_ ~~c~~", "| a |\n|---|\n| @maria |",
}

func TestTextOfStrangersIsInertInEveryView(t *testing.T) {
	t.Parallel()
	for i, a := range attacks {
		t.Run(fmt.Sprintf("INV-52 %02d", i), func(t *testing.T) {
			t.Parallel()
			r := poisoned(a)
			looked := poisoned(a)
			looked.Inspection = &Inspection{Number: 7, URL: sample().Published.URL, Branch: a, Head: a, Proved: a, Moved: a, Run: a, Compared: []Compared{{a, a, a, false}}}
			p := Progress{Run: a, Actor: a, Agent: a, Cause: a, Now: a, Notes: []string{a}, Ticks: []TickProgress{{N: 1, Verdict: a, Steps: []Step{{a, a, a}}}}, RunURL: r.RunURL}
			for view, body := range map[string]string{
				"PR": PRBody(r, 0), "status": StatusComment(r, 0), "running": RunningComment(p, 0), "summary": JobSummary(r), "answer": InspectionAnswer(looked, 0), "summary of a look": JobSummary(looked),
			} {
				for _, act := range acts(t, body) {
					if !ours(act) {
						t.Errorf("%s acts on %q: %q", view, a, act)
					}
				}
				if !utf8.ValidString(body) || strings.ContainsAny(body, "\x1b\u202e\x00\r") {
					t.Errorf("%s holds raw control characters", view)
				}
				for i, line := range strings.Split(body, "\n") {
					if strings.HasPrefix(strings.TrimSpace(line), "/") || strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
						t.Errorf("%s line %d is a command: %q", view, i, line)
					}
					if markers := strings.Count(line, "<!-- proctor:"); markers > 1 || markers == 1 && !strings.HasPrefix(line, "<!-- proctor:") {
						t.Errorf("%s line %d forges a marker: %q", view, i, line)
					}
				}
			}
			title := PRTitle(r)
			for _, re := range []*regexp.Regexp{mention, reference, closing} {
				if re.MatchString(title) || strings.ContainsAny(title, "\n\x1b\u202e") || strings.Contains(title, "<!-- ") {
					t.Errorf("title acts on %q: %q", a, title)
				}
			}
			for i, line := range strings.Split(Plain(r, ""), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") || strings.ContainsAny(line, "\x1b\r\u202e") {
					t.Errorf("INV-43: Plain line %d: %q", i, line)
				}
			}
		})
	}
	t.Run("control: the same text unescaped does harm", func(t *testing.T) {
		t.Parallel()
		for _, a := range []string{"@maria", "fixes #12", "![x](https://evil.example/p.png)", "<img src='//evil.example/p.png'>", "https://evil.example", "<!-- proctor:status -->"} {
			if len(acts(t, "> "+a)) == 0 {
				t.Errorf("%q would do nothing", a)
			}
		}
	})
}

// poisoned is a record with a in every place where a stranger's text may stand.
func poisoned(a string) Record {
	r := sample()
	r.Trigger.Title, r.Trigger.Actor, r.Trigger.Role, r.Trigger.Cause, r.Reason, r.Next = a, a, a, a, a, a
	r.Agent, r.Tool = AgentRef{a, a, a}, Tool{a, a}
	r.Notes, r.Risk = []string{a, a}, Risk{a, []string{a}}
	r.Removed = []Removal{{a, 1, a}}
	r.Confinement = []Enforced{{Name: a, Active: true, Detail: a}, {Name: a, Detail: a}, {Name: a, Detail: a, Optional: true}}
	r.Kept, r.Branch, r.Published.Branch = a, a, a
	if inert.Link("", a) == "" { // the forge's own addresses are the one thing that is linked
		r.Published.URL, r.RunURL, r.Trigger.IssueURL = a, a, a
	}
	r.Calls[0].Model, r.Calls[0].Purpose = a, a
	last := &r.Ticks[1]
	last.Files = append(last.Files, FileDelta{Path: a, Status: a, OldMode: a, NewMode: a + "x", Risk: a})
	last.Guard = []Finding{{a, a, a, 1, a}}
	last.Review.Findings = []Finding{{a, a, a, 1, a}}
	last.Agent.Outcome, last.Verdict, last.Note = a, a, a
	last.Gates[0].Name, last.Gates[0].Command, last.Gates[0].Detail = a, a, a
	last.Proof[2].Name, last.Proof[2].Command = a, a
	return r
}

func TestViewsKeepOrdinaryText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Größe in Zürich – 日本語 👩‍👩‍👧": "Größe in Zürich – 日本語 👩‍👩‍👧",
		"two  blanks\nand a line":     "two blanks and a line",
		"1. first":                    "1\\. first",
		"a-b_c":                       "a-b\\_c",
		"50% of 3 + 4 = 5":            "50% of 3 + 4 = 5",
	} {
		if got := inert.Text(in, 100); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"go test ./...":      "`go test ./...`",
		"a`b":                "`` a`b ``",
		"npm run @scope/x#1": "`npm run @scope/x#1`",
		"line\nbreak":        "`line\\nbreak`",
		"":                   "–",
	} {
		if got := inert.Code(in, 100); got != want {
			t.Errorf("Code(%q) = %q, want %q", in, got, want)
		}
	}
	if got := inert.Text(strings.Repeat("x", 30), 10); got != "xxxxxxxxxx… (20 characters more)" {
		t.Errorf("cut: %q", got)
	}
}

func TestViewsKeepWithinEveryLimitAndSayWhatIsCut(t *testing.T) {
	t.Parallel()
	small, big := sample(), huge()
	full, fullBig := len(PRBody(small, 10<<20)), len(PRBody(big, 10<<20))
	for _, limit := range []int{300, 2000, full - 1, full, full + 1, 20_000, MaxGitHubBody, 1_048_576} {
		for name, r := range map[string]Record{"small": small, "huge": big} {
			for view, body := range map[string]string{"PR": PRBody(r, limit), "status": StatusComment(r, limit), "answer": InspectionAnswer(r, limit)} {
				if len(body) > limit {
					t.Errorf("INV-52: %s %s: %d bytes in a limit of %d", name, view, len(body), limit)
				}
				if !utf8.ValidString(body) || strings.Count(body, "<details>") != strings.Count(body, "</details>") {
					t.Errorf("INV-52: %s %s at %d is broken by the cut:\n%s", name, view, limit, body)
				}
			}
			body := PRBody(r, limit)
			whole := full <= limit
			if name == "huge" {
				whole = fullBig <= limit
			}
			if said := strings.Contains(body, "Cut to fit"); said == whole {
				t.Errorf("INV-52: %s at %d: cut %v, says so %v", name, limit, !whole, said)
			}
			if !whole && !strings.Contains(body, RecordFile) {
				t.Errorf("INV-52: %s at %d does not say where the rest is", name, limit)
			}
		}
	}
	if got := PRBody(big, 0); strings.Contains(got, "files are in the record") || !strings.Contains(got, "Closes #42") ||
		!strings.Contains(got, "of 302 changed files") || !strings.HasSuffix(got, PullRequestEnd+"\n") {
		t.Errorf("huge body lost its verdict or its end: %s", got[len(got)-600:])
	}
	for i := range 300 {
		big.Ticks = append(big.Ticks, big.Ticks[i])
	}
	if n := len(JobSummary(big)); n > MaxJobSummary {
		t.Errorf("INV-52: job summary of %d bytes", n)
	}
}

func TestTheGateTableMatchesTheRecord(t *testing.T) {
	t.Parallel()
	r := sample()
	body := PRBody(r, 0)
	_, table, _ := strings.Cut(body, "| Gate | Ran in |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	gates := r.deciding()
	if len(rows) != len(gates) {
		t.Fatalf("%d rows for %d gates", len(rows), len(gates))
	}
	for i, g := range gates {
		if !strings.Contains(rows[i], g.Class) || !strings.Contains(rows[i], place(g.Where)) || !strings.Contains(rows[i], g.Status) {
			t.Errorf("row %q does not match %+v", rows[i], g)
		}
		if g.HeldOut() == strings.Contains(rows[i], g.Command) {
			t.Errorf("INV-27: row %q: command %q", rows[i], g.Command)
		}
	}
}

func TestOfAHeldOutGateOnlyNameAndResultAreShown(t *testing.T) {
	t.Parallel()
	r := ended(t, Overfit)
	proof := &r.Ticks[1].Proof[2]
	proof.Detail, proof.ExitCode, proof.Millis, proof.Command = "sealed-words", 87, 987654, "sealed-command"
	for i := range r.Ticks {
		for j := range r.Ticks[i].Proof {
			r.Ticks[i].Proof[j].Millis = 987654
		}
	}
	html, err := Report(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for view, body := range map[string]string{
		"PR": PRBody(r, 0), "status": StatusComment(r, 0), "summary": JobSummary(r), "plain": Plain(r, ""), "report": string(html),
	} {
		for _, sealed := range []string{"sealed-words", "sealed-command", "exit 87", "987", "16 min 27 s"} {
			if strings.Contains(body, sealed) {
				t.Errorf("INV-27: %s says %q", view, sealed)
			}
		}
		if !strings.Contains(body, "did not pass") {
			t.Errorf("%s does not say that the held-out gate did not pass", view)
		}
	}
}

func TestSealedIsOnlySaidWhereItWasEnforced(t *testing.T) {
	t.Parallel()
	r := sample()
	if b := PRBody(r, 0); !strings.Contains(b, "The agent never had its files") || strings.Contains(b, "not sealed") {
		t.Errorf("control: %s", b)
	}
	r.Confinement[0].Active = false
	if b := PRBody(r, 0); strings.Contains(b, "The agent never had") || !strings.Contains(b, "hidden, not sealed") || !strings.Contains(b, "Not enforced on this machine") {
		t.Errorf("weak confinement is not named:\n%s", b)
	}
	r.Ticks[1].Proof = r.Ticks[1].Proof[:2]
	if b := PRBody(r, 0); !strings.Contains(b, "**Held out:** nothing.") {
		t.Errorf("a missing acceptance gate is not named:\n%s", b)
	}
}

func TestWhatIsHeldLessTightlyIsToldApartFromWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Confinement = []Enforced{{Name: "filesystem", Active: true}, {Name: "private-tmp", Detail: "no namespace", Optional: true}}
	body := PRBody(r, 60000)
	if !strings.Contains(body, "less tightly") || !strings.Contains(body, "private-tmp: no namespace") || strings.Contains(body, "Not enforced on this machine") {
		t.Errorf("the body says\n%s", body)
	}
	if text := Plain(r, ""); strings.Contains(text, "Unconfined") {
		t.Errorf("the account says\n%s", text)
	}
	// The control: without a stand-in it is not held.
	r.Confinement[1].Optional = false
	if body, text := PRBody(r, 60000), Plain(r, ""); strings.Contains(body, "less tightly") || !strings.Contains(body, "Not enforced on this machine") || !strings.Contains(text, "Unconfined") {
		t.Errorf("the control: the body says\n%s\nthe account\n%s", body, text)
	}
}

func TestADryRunThatWentWellClaimsNoProof(t *testing.T) {
	t.Parallel()
	r := sample()
	r.DryRun, r.Ticks, r.Calls, r.Head, r.Published = true, nil, nil, nil, nil
	r.Finish(Done, "everything a run needs is here", "run it without --dry-run")
	r.Settle(0)
	if err := Validate(r); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{StatusComment(r, 0), JobSummary(r), Plain(r, ""), PRBody(r, 0)} {
		if strings.Contains(s, "Proved") || strings.Contains(s, "PROVED") || strings.Contains(s, "Closes") {
			t.Errorf("says that something was proved:\n%s", s)
		}
	}
}

func TestTheCommitOfAPullRequestBodyIsReadBack(t *testing.T) {
	t.Parallel()
	body := PRBody(sample(), 0)
	if got := PullRequestHead(body); got != hexid("2", 40) {
		t.Errorf("got %q", got)
	}
	for _, b := range []string{"", "x" + body, "\n" + body, "> " + body, "<!-- proctor:pull-request head=main -->", "<!-- proctor:pull-request head=" + hexid("2", 40)} {
		if got := PullRequestHead(b); got != "" {
			t.Errorf("%.60q gave %q", b, got)
		}
	}
}

func FuzzTextIsInert(f *testing.F) {
	for _, a := range attacks {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, a string) {
		for _, body := range []string{
			"> " + inert.Text(a, 300), "x " + inert.Text(a, 300), "x " + inert.Code(a, 300) + " y",
			"| a | b |\n|---|---|\n| " + inert.Text(a, 300) + " | " + inert.Cell(a, 300) + " |\n", "- **" + inert.Text(a, 60) + "** " + inert.Code(a, 60) + ": " + inert.Text(a, 60),
		} {
			for _, act := range acts(t, body) {
				if !ours(act) {
					t.Errorf("%q in %q acts: %q", a, body, act)
				}
			}
		}
	})
}
