package evidence

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// signed is the sample as a forge signed it.
func signed() Record {
	r := sample()
	pushed := Commit{ID: hexid("5", 40), Tree: r.Head.Tree}
	r.Signing = &Signing{Mode: "required", Signed: true, Proved: *r.Head, Pushed: &pushed, Commits: 2}
	r.Published.Commit = pushed.ID
	return r
}

// unsigned is the sample where nobody would sign it.
func unsigned() Record {
	r := sample()
	r.Signing = &Signing{Mode: "auto", Proved: *r.Head, Reason: "the token is a person's <!-- @maya closes #3 -->"}
	return r
}

// INV-15: a record binds the pushed commit to the proved one, by one tree.
func TestARecordBindsWhatWasSignedToWhatWasProved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of     func() Record
		change func(*Record)
		want   string // "" for valid
	}{
		"control: signed":                     {signed, func(*Record) {}, ""},
		"control: not signed":                 {unsigned, func(*Record) {}, ""},
		"another tree":                        {signed, func(r *Record) { r.Signing.Pushed.Tree = hexid("9", 40) }, "the signed commit has the tree"},
		"of another commit":                   {signed, func(r *Record) { r.Signing.Proved = *commit("1") }, "which is not the head"},
		"of no commit":                        {signed, func(r *Record) { r.Signing.Pushed.ID = "x" }, "want 40 or 64"},
		"under the same id":                   {signed, func(r *Record) { r.Signing.Pushed.ID, r.Published.Commit = r.Head.ID, r.Head.ID }, "is the unsigned one"},
		"pushed is the proved one":            {signed, func(r *Record) { r.Published.Commit = r.Head.ID }, "is not the head"},
		"signed without a commit":             {signed, func(r *Record) { r.Signing.Pushed, r.Published.Commit = nil, r.Head.ID }, "says signed true"},
		"signed and a reason against it":      {signed, func(r *Record) { r.Signing.Reason = "x" }, "with the reason"},
		"not signed and no reason":            {unsigned, func(r *Record) { r.Signing.Reason = "" }, "with the reason"},
		"required, published without one":     {unsigned, func(r *Record) { r.Signing.Mode = "required" }, "was required"},
		"a mode that there is not":            {unsigned, func(r *Record) { r.Signing.Mode = "off" }, "has the mode"},
		"not signed, and pushed as another":   {unsigned, func(r *Record) { r.Published.Commit = hexid("5", 40) }, "is not the head"},
		"signed, and the commits not counted": {signed, func(r *Record) { r.Signing.Commits = 0 }, "0 commits"},
	} {
		r := c.of()
		c.change(&r)
		err := Validate(r)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("INV-15 %s: %v, want %q", name, err, c.want)
		}
	}
}

func TestEveryViewShowsBothIdsOrWhyThereIsOne(t *testing.T) {
	t.Parallel()
	r := signed()
	body := PRBody(r, 0)
	claim, ok := PullRequestClaim(body)
	want, _ := r.Claim()
	if d := cmp.Diff(want, claim); !ok || d != "" || claim.OnBranch() != hexid("5", 40) || claim.Head != *r.Head || PullRequestHead(body) != hexid("5", 40) {
		t.Errorf("the body claims %+v, %v:\n%s", claim, ok, d)
	}
	other := strings.Replace(body, "head="+hexid("5", 40), "head="+r.Head.ID, 1)
	if _, ok := PullRequestClaim(other); ok {
		t.Error("a body whose markers name two commits is believed")
	}
	plain := sample()
	if c, ok := PullRequestClaim(PRBody(plain, 0)); !ok || c.Pushed != "" || c.OnBranch() != plain.Head.ID {
		t.Errorf("an unsigned run claims %+v", c)
	}
	page := htmlOf(t, r)
	for view, text := range map[string]string{"body": body, "summary": JobSummary(r), "status": StatusComment(r, 0), "check": CheckSummary(r, 0), "terminal": Plain(r, ""), "page": page} {
		if !strings.Contains(text, "signed by the forge, 2 commits") {
			t.Errorf("the %s does not say that it is signed:\n%s", view, text)
		}
	}
	for view, text := range map[string]string{"body": body, "summary": JobSummary(r), "page": page} {
		if !strings.Contains(text, r.Head.ID) || !strings.Contains(text, hexid("5", 40)) {
			t.Errorf("the %s does not show both ids:\n%s", view, text)
		}
	}
	n := unsigned()
	for view, text := range map[string]string{"body": PRBody(n, 0), "summary": JobSummary(n), "status": StatusComment(n, 0), "terminal": Plain(n, ""), "page": htmlOf(t, n)} {
		if !strings.Contains(text, "not signed: the token is a person") || view != "terminal" && strings.Contains(text, "<!-- @maya") {
			t.Errorf("INV-52 the %s does not say why nothing is signed, or not as plain words:\n%s", view, text)
		}
	}
	if !strings.Contains(body, "git checkout --detach "+hexid("5", 40)) {
		t.Errorf("a reader is sent to a commit that is not on the branch:\n%s", body)
	}
}

func TestAStatementIsAboutBothCommits(t *testing.T) {
	t.Parallel()
	dir, r := written(t, signed())
	file := filepath.Join(dir, RecordFile)
	s, err := ReadStatement(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Binds(file, r); err != nil || len(s.Subject) != 3 {
		t.Errorf("%v, subjects %+v", err, s.Subject)
	}
	other := r
	other.Signing = nil
	if s.Binds(file, other) == nil {
		t.Error("a statement about two commits binds a record of one")
	}
	s.Subject[2].Digest["gitCommit"] = hexid("6", 40)
	if s.Binds(file, r) == nil {
		t.Error("a statement about another pushed commit binds the record")
	}
}

// htmlOf is the report page.
func htmlOf(t *testing.T, r Record) string {
	t.Helper()
	b, err := Report(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
