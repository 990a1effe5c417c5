package publish_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/publish"
	"github.com/proctor-ci/proctor/internal/publish/publishtest"
)

// maker is a forge that makes commits. What it answers is answers[n], the last for all that follow.
type maker struct {
	*publishtest.Forge
	why     string
	answers []func(*forge.MadeCommit) error
	asked   []forge.NewCommit
}

func (m *maker) Unsigned() string { return m.why }

func (m *maker) MakeCommit(_ context.Context, n forge.NewCommit) (forge.MadeCommit, error) {
	m.asked = append(m.asked, n)
	out := forge.MadeCommit{ID: signedID(len(m.asked)), Tree: n.Tree, Parents: n.Parents, Verified: true, Reason: "valid"}
	if len(m.answers) == 0 {
		return out, nil
	}
	err := m.answers[min(len(m.asked), len(m.answers))-1](&out)
	return out, err
}

func signedID(n int) string { return strings.Repeat(fmt.Sprint(n+4), 40) }

func asAsked(*forge.MadeCommit) error { return nil }

func unverified(c *forge.MadeCommit) error {
	c.Verified, c.Reason = false, "unsigned"
	return nil
}

func refuses(kind error) func(*forge.MadeCommit) error {
	return func(*forge.MadeCommit) error { return publishtest.Error("have a commit signed", kind, 422, "no", "") }
}

// two are two commits of ours, the second of which is proved.
type two struct{ kept []string }

func (*two) Unsigned(context.Context, string) ([]publish.Unsigned, error) {
	tree := strings.Repeat("c", 40)
	return []publish.Unsigned{
		{ID: oldID, NewCommit: forge.NewCommit{Tree: tree, Parents: []string{baseID}, Message: "one"}},
		{ID: headID, NewCommit: forge.NewCommit{Tree: tree, Parents: []string{oldID, baseID}, Message: "two"}},
	}, nil
}

func (k *two) Keep(_ context.Context, c publish.Unsigned, parents []string, made forge.MadeCommit) error {
	k.kept = append(k.kept, c.ID+" "+made.ID+" on "+strings.Join(parents, " "))
	return nil
}

// INV-15: all commits are signed on the signed ones, or the proved commit is pushed; and what no signature comes of costs one request.
func TestSigningIsOfAllCommitsOrOfNone(t *testing.T) {
	t.Parallel()
	before := evidence.Signing{Mode: "auto", Signed: true, Proved: evidence.Commit{ID: headID, Tree: strings.Repeat("c", 40)}, Pushed: &evidence.Commit{ID: humans, Tree: strings.Repeat("c", 40)}, Commits: 2}
	for name, c := range map[string]struct {
		mode    string
		forge   func(*publishtest.Forge) forge.Forge
		answers []func(*forge.MadeCommit) error
		tip     string
		signed  *evidence.Signing
		pushing error
		asked   int
		waits   string
		pushed  string // the branch, "" where nothing was pushed
		says    string
	}{
		"signed":                                {mode: "auto", asked: 2, pushed: signedID(2)},
		"off":                                   {mode: "off", pushed: headID},
		"not said":                              {pushed: headID},
		"unsigned at the first":                 {mode: "auto", answers: []func(*forge.MadeCommit) error{unverified}, asked: 1, pushed: headID, says: `did not sign the commit that it made, and says "unsigned"`},
		"unsigned at the second":                {mode: "auto", answers: []func(*forge.MadeCommit) error{asAsked, unverified}, asked: 2, pushed: headID, says: "did not sign"},
		"unsigned and required":                 {mode: "required", answers: []func(*forge.MadeCommit) error{asAsked, unverified}, asked: 2, says: "did not sign"},
		"refused":                               {mode: "auto", answers: []func(*forge.MadeCommit) error{refuses(forge.ErrForbidden)}, asked: 1, pushed: headID, says: "not allowed"},
		"refused and required":                  {mode: "required", answers: []func(*forge.MadeCommit) error{refuses(forge.ErrForbidden)}, asked: 1, says: "not allowed"},
		"an API that lags":                      {mode: "required", answers: []func(*forge.MadeCommit) error{refuses(forge.ErrInvalid), refuses(forge.ErrNotFound), asAsked}, asked: 4, waits: "[250ms 500ms]", pushed: signedID(4)},
		"objects that never come":               {mode: "auto", answers: []func(*forge.MadeCommit) error{refuses(forge.ErrInvalid)}, asked: 4, waits: "[250ms 500ms 1s]", pushed: headID, says: "refused"},
		"a forge without the call":              {mode: "auto", forge: func(f *publishtest.Forge) forge.Forge { f.Kind = "gitlab"; return f }, pushed: headID, says: "GitLab signs what its own pages commit"},
		"a forge without the call, required":    {mode: "required", forge: func(f *publishtest.Forge) forge.Forge { f.Kind = "gitlab"; return f }, says: "GitLab signs what its own pages commit"},
		"a person's token":                      {mode: "auto", forge: func(f *publishtest.Forge) forge.Forge { return &maker{Forge: f, why: "a person's token"} }, pushed: headID, says: "a person's token"},
		"signed by an earlier run and pushed":   {mode: "auto", tip: humans, signed: &before, pushed: humans},
		"signed by an earlier run, not pushed":  {mode: "auto", signed: &before, asked: 2, pushed: signedID(2)},
		"the checkpoint is lost to another run": {mode: "auto", pushing: errors.New("another run has changed it"), asked: 2, says: ""},
	} {
		t.Run("INV-15 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			m := &maker{Forge: w.forge, answers: c.answers}
			w.pub.Forge = m
			if c.forge != nil {
				w.pub.Forge = c.forge(w.forge)
			}
			store, waits := &two{}, []time.Duration{}
			w.pub.Commits = store
			w.pub.Wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			if c.tip != "" {
				w.forge.Heads[branch] = c.tip
			}
			q := publish.Request{Record: proved(headID), Target: publish.Target{Branch: branch, Tip: c.tip}, Base: "main", Signing: c.mode, Signed: c.signed,
				Pushing: func(context.Context, evidence.Signing) error { return c.pushing }}
			res, err := w.pub.Publish(t.Context(), q)
			if len(m.asked) != c.asked || (c.waits != "" || len(waits) > 0) && c.waits != fmt.Sprint(waits) {
				t.Errorf("%d commits were asked for, with waits %v", len(m.asked), waits)
			}
			if c.pushed == "" {
				f := failure(t, err)
				if f.Step != publish.StepSign || f.Next == "" || !strings.Contains(f.Error(), c.says) || w.forge.Heads[branch] != "" || len(w.push.Pushed) != 0 {
					t.Errorf("%v; the branch is at %q", err, w.forge.Heads[branch])
				}
				r := proved(headID)
				f.Settle(&r)
				if err := evidence.Validate(r); err != nil || r.Published != nil {
					t.Errorf("the record of the failure: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if w.forge.Heads[branch] != c.pushed || res.Commit != c.pushed || evidence.PullRequestHead(w.forge.Pulls[0].Body) != c.pushed {
				t.Errorf("pushed was %s, the branch is at %s, and the body says %s", res.Commit, w.forge.Heads[branch], evidence.PullRequestHead(w.forge.Pulls[0].Body))
			}
			if c.says != "" && (res.Signing.Signed || !strings.Contains(res.Signing.Reason, c.says) || !strings.Contains(w.forge.Pulls[0].Body, "not signed: ")) {
				t.Errorf("of signing it is said %+v", res.Signing)
			}
			r := proved(headID)
			r.Published, r.Signing = &res.Published, res.Signing
			if err := evidence.Validate(r); err != nil {
				t.Error(err)
			}
			if c.pushed == signedID(2) {
				want := []string{oldID + " " + signedID(1) + " on " + baseID, headID + " " + signedID(2) + " on " + signedID(1) + " " + baseID}
				if d := cmp.Diff(want, store.kept); d != "" || !slices.Equal(m.asked[1].Parents, []string{signedID(1), baseID}) {
					t.Errorf("INV-15 kept (-want +got):\n%s", d)
				}
			}
		})
	}
}

func TestWhatWasSignedAndHasNoPullRequestIsToldByItsBranch(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.pub.Forge, w.pub.Commits = &maker{Forge: w.forge}, &two{}
	w.forge.Before = func(op string) error {
		if op == "CreatePullRequest" {
			return publishtest.Error(op, forge.ErrPullRequestsForbidden, 403, "no", "")
		}
		return nil
	}
	_, err := w.pub.Publish(t.Context(), publish.Request{Record: proved(headID), Target: publish.Target{Branch: branch}, Base: "main", Signing: "auto"})
	f, r := failure(t, err), proved(headID)
	f.Settle(&r)
	if err := evidence.Validate(r); err != nil || r.Published == nil || r.Published.Commit != signedID(2) || w.forge.Heads[branch] != signedID(2) || !strings.Contains(f.Error(), signedID(2)) {
		t.Errorf("%v: %v; the record says %+v", err, f, r.Published)
	}
}
