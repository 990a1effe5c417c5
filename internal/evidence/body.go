package evidence

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/proctor-ci/proctor/internal/inert"
)

// Markers that begin the bodies which are ours. They count at the very start of a body only, and
// only when our own account wrote it: anybody can type them.
const (
	StatusMarker   = "<!-- proctor:status -->"
	AnswerMarker   = "<!-- proctor:answer -->"
	pullMarkerHead = "<!-- proctor:pull-request head="
	pullMarkerTail = " -->"
	// PullRequestEnd ends our part of a pull request's body; what people write below it is theirs.
	PullRequestEnd = "<!-- proctor:end -->"
)

// PullRequestHead reads from a body that PRBody made which commit was pushed with it; "" when the
// body is not of that kind. It says nothing about who wrote the body.
func PullRequestHead(body string) string {
	rest, ok := strings.CutPrefix(body, pullMarkerHead)
	id, _, tail := strings.Cut(rest, pullMarkerTail)
	if !ok || !tail || !idShape.MatchString(id) {
		return ""
	}
	return id
}

// PRTitle is the issue's title as one inert line of at most 200 characters.
func PRTitle(r Record) string {
	if s := inert.Words(inert.Visible(r.goal(), maxTitle)); s != "" {
		return s
	}
	if r.Trigger.Issue > 0 {
		return fmt.Sprintf("Change for issue %d", r.Trigger.Issue)
	}
	return "Proposed change"
}

// PRBody is the pull request's description: the verdict, what proved it, what it cost, and where
// the rest lies. It stays within limit bytes (0: GitHub's 65,536) and says what it left out.
func PRBody(r Record, limit int) string {
	return fit(limit, r.rest(), "\n"+PullRequestEnd+"\n", func(p *page) {
		if r.Head != nil {
			p.linef("%s%s%s", pullMarkerHead, r.pushedID(), pullMarkerTail)
			if c, ok := r.Claim(); ok {
				p.linef("%s", c.marker())
			}
		}
		p.headline(r)
		if r.closes() {
			p.linef("\nCloses #%d", r.Trigger.Issue)
		} else if r.Trigger.Revise {
			p.linef("\nThis continues an open pull request; the issue stays as it is.")
		}
		if g := r.goal(); g != "" {
			p.linef("\n> %s", inert.Text(g, maxTitle))
		}
		if r.Terminal == Done {
			p.linef("\n### What proved it")
		} else {
			p.linef("\n### Gates")
		}
		p.body(r)
		p.verify(r)
	})
}

// JobSummary is the page of the CI job: the same account, for every ending. It stays within 1 MiB,
// above which GitHub drops a summary whole.
func JobSummary(r Record) string {
	// The runner adds a line end of its own, and a job may have written a summary before.
	return fit(MaxJobSummary-64<<10, r.rest(), "", func(p *page) {
		p.headline(r)
		p.ending(r)
		if g := r.goal(); g != "" {
			p.linef("\n> %s", inert.Text(g, maxTitle))
		}
		p.linef("\n### Gates")
		p.body(r)
		p.verify(r)
	})
}

// headline is the verdict.
func (p *page) headline(r Record) {
	t := r.terminal()
	dry := ""
	if r.DryRun {
		dry = " · dry run"
	}
	p.linef("## %s %s%s\n\n%s", face(t), t.Title, dry, inert.Text(r.verdict(), maxDetail))
	if r.DryRun {
		p.linef("\nThis was a dry run: nothing was pushed and nothing was written on the forge.")
	}
}

// ending is the reason, what a person does now, and where the work is.
func (p *page) ending(r Record) {
	if r.Reason != "" && r.Terminal != Done {
		p.linef("\n**Why:** %s", r.prose(r.Reason))
	}
	if r.Next != "" {
		p.linef("\n**Next:** %s", r.prose(r.Next))
	}
	if v := r.Published; v != nil {
		p.linef("\n%s", r.pullRequest())
		p.signed(r)
	}
	if r.Kept != "" && r.Terminal != Done && r.Head != nil {
		p.linef("\n**Kept:** commit %s on %s.", inert.Code(r.Head.ID, 80), inert.Code(r.Kept, maxPath))
	}
}

// prose is inert.Text in which addresses on the forge's own host can be clicked, because some next steps
// are a click. Addresses of issues stay words: beside a closing word they would close.
func (r Record) prose(s string) string {
	words := strings.Split(inert.Visible(s, 2*maxDetail), " ")
	for i, w := range words {
		bare := strings.TrimRight(w, ".,;:")
		if r.ownAddress(bare) {
			words[i] = inert.Link("this page", bare) + w[len(bare):]
			continue
		}
		words[i] = inert.Text(w, 2*maxDetail)
	}
	return strings.Join(words, " ")
}

func (r Record) ownAddress(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || strings.Contains(u.Path, "/issues/") {
		return false
	}
	for _, own := range []string{r.RunURL, r.Trigger.IssueURL} {
		if o, err := url.Parse(own); err == nil && o.Host == u.Host && o.Scheme == u.Scheme {
			return inert.Link("", s) != ""
		}
	}
	return false
}

// pullRequest is one line about what stands on the forge.
func (r Record) pullRequest() string {
	v := r.Published
	if v == nil {
		return ""
	}
	if v.Number == 0 {
		return fmt.Sprintf("**Branch:** %s at %s; no pull request is open.", inert.Code(v.Branch, maxPath), inert.Code(short(v.Commit), 20))
	}
	kind := "Pull request"
	if v.Draft {
		kind = "Draft pull request"
	}
	did := "opened"
	if v.Updated {
		did = "updated"
	}
	return fmt.Sprintf("**%s:** %s (%s, branch %s at %s)", kind, inert.Link(fmt.Sprintf("%s %d", strings.ToLower(kind), v.Number), v.URL), did,
		inert.Code(v.Branch, maxPath), inert.Code(short(v.Commit), 20))
}

// body is the part that every long view shares.
func (p *page) body(r Record) {
	p.inspected(r)
	p.gates(r)
	p.plan(r)
	p.findings(r)
	p.change(r)
	if len(r.Ticks) > 0 {
		p.open("How it got there: " + count(len(r.Ticks), "tick") + " in " + took(r.Totals.Millis))
		p.ticks(r)
		p.close()
	}
	p.costs(r)
	p.staged(r)
	p.confinement(r)
	p.removed(r)
	p.notes(r)
	p.linef("\n### Provenance")
	p.provenance(r)
}

// rest says where everything lies that a view leaves out.
func (r Record) rest() string {
	s := "The whole account is in " + inert.Code(RecordFile, 80) + " and " + inert.Code(ReportFile, 80)
	if r.RunURL != "" {
		return s + ", with " + inert.Link("the run", r.RunURL) + "."
	}
	return s + ", in the run's directory."
}
