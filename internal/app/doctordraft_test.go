package app

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/git"
)

// trialOn is the forge's half of `proctor doctor --live`, without gates and models: the clone's store, the real client, a report.
type trialOn struct {
	*practice
	x     examination
	forge forge.Forge
	rep   doctor.Report
}

// trials runs f on both forges; the doctor is labBot or asker, who may write and no more.
func trials(t *testing.T, f func(t *testing.T, o *trialOn)) {
	for _, kind := range []string{"GitHub", "GitLab"} {
		t.Run(kind, func(t *testing.T) {
			o := &trialOn{}
			if kind == "GitHub" {
				o.practice = openPractice(t, setting{})
			} else {
				o.practice = openLabPractice(t, nil)
				o.asLab(forgetest.GitLabToken{Login: labBot})
			}
			o.prepare()
			f(t, o)
		})
	}
}

// session is what doctor has when it comes to the forge.
func (p *practice) session() (*session, forge.Forge) {
	p.t.Helper()
	env := merged(map[string]string{"HOME": p.dir}, p.env)
	e := Env{Dir: p.clone, Stdout: discard{}, Random: rand.Reader, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Now: func() time.Time { return time.Now().Add(p.later) }, Getenv: func(n string) string { return env[n] }}
	req, at, err := doctorRequest(e)
	if err != nil || at.forge == nil {
		p.t.Fatal(err, at.why)
	}
	req.reports = p.t.TempDir()
	s := newSession(e, req)
	s.begin()
	p.t.Cleanup(func() { _ = s.events.Close(); s.release(context.Background()) })
	if err := s.open(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return s, at.forge
}

func (o *trialOn) prepare() {
	o.rep = doctor.Report{}
	s, f := o.session()
	o.x, o.forge = examination{s: s, rep: &o.rep, asks: true}, f
}

// try is what --live does on the forge.
func (o *trialOn) try(ctx context.Context) {
	o.t.Helper()
	repo, err := o.forge.Repository(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	o.x.tryDraft(ctx, o.forge, repo)
}

// branches are the trials' that the forge has.
func (o *trialOn) branches() []string {
	o.t.Helper()
	return strings.Fields(gitAt(o.t, o.site.GitDir(), "", "for-each-ref", "--format=%(refname:short)", "refs/heads/proctor-doctor"))
}

func (o *trialOn) clean() {
	o.t.Helper()
	if left := o.branches(); len(left) != 0 {
		o.t.Errorf("branches are left: %q\n%s", left, o.rep.Text())
	}
	for _, p := range o.site.Pulls() {
		if p.State != "closed" {
			o.t.Errorf("left open: %+v", p)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestALiveDoctorOpensARealDraftAndTakesItBack(t *testing.T) {
	trials(t, func(t *testing.T, o *trialOn) {
		o.try(t.Context())
		for _, check := range []string{"live.push", "live.draft", "live.comment", "live.label", "live.clean"} {
			if _, ok := found(o.rep, check, doctor.OK); !ok {
				t.Errorf("%s is not proved:\n%s", check, o.rep.Text())
			}
		}
		o.clean()
		all := o.site.Pulls()
		if len(all) != 1 || !all[0].Draft || len(all[0].Labels) != 1 || len(o.site.PullComments(all[0].Number)) != 1 || strings.HasPrefix(all[0].Head, "proctor/") || strings.Contains(all[0].Body, "loses #") {
			t.Fatalf("what was opened: %+v", all)
		}
		// The commit says that nobody's CI is to run for it, and changes nothing.
		if text := gitAt(t, o.site.GitDir(), "", "log", "-1", "--format=%s", all[0].HeadSHA); !strings.Contains(text, "[skip ci]") {
			t.Errorf("the commit is %q", text)
		}
		if diff := gitAt(t, o.site.GitDir(), "", "diff", "--name-only", base, all[0].HeadSHA); diff != "" {
			t.Errorf("it changes %q", diff)
		}
		// Without --live nothing of the kind.
		o.rep = doctor.Report{}
		o.x.asks = false
		o.x.at.forge = o.forge
		o.x.forge(t.Context())
		if got := o.site.Pulls(); len(got) != 1 || !o.rep.Right {
			t.Errorf("without --live: %d pull requests\n%s", len(got), o.rep.Text())
		}
	})
}

// Each step fails alone: it is named with what mends it, and what was opened before is taken back all the same.
func TestWhateverStepOfALiveDraftFailsTheRestIsTakenBack(t *testing.T) {
	trials(t, func(t *testing.T, o *trialOn) {
		lab := o.lab != nil
		refused := forgetest.Refusal(403, "Resource not accessible by integration")
		pick := func(hub, of string) string {
			if lab {
				return of
			}
			return hub
		}
		for _, c := range []struct{ check, path string }{
			{"live.draft", pick("POST /repos/*/*/pulls", "POST /projects/*/merge_requests")},
			{"live.comment", pick("POST /repos/*/*/issues/*/comments", "POST /projects/*/merge_requests/*/notes")},
			{"live.label", pick("POST /repos/*/*/issues/*/labels", "PUT /projects/*/merge_requests/*")},
		} {
			if err := o.site.Fail(c.path, 1, refused); err != nil {
				t.Fatal(err)
			}
			o.rep = doctor.Report{}
			o.try(t.Context())
			if f, ok := found(o.rep, c.check, doctor.Failed); !ok || f.Fix == "" {
				t.Errorf("%s is not named:\n%s", c.check, o.rep.Text())
			}
			o.clean()
		}
		if left := o.site.Unmet(); len(left) != 0 {
			t.Errorf("faults that were never met: %v", left)
		}
	})
}

// The branch that cannot be deleted is named with the command that deletes it, and the next --live takes it back.
func TestWhatALiveDoctorCannotTakeBackItNames(t *testing.T) {
	trials(t, func(t *testing.T, o *trialOn) {
		path := "DELETE /repos/*/*/git/refs/heads/*/*"
		if o.lab != nil {
			path = "DELETE /projects/*/repository/branches/*"
		}
		if err := o.site.Fail(path, 1, forgetest.Refusal(403, "no")); err != nil {
			t.Fatal(err)
		}
		o.try(t.Context())
		left := o.branches()
		f, ok := found(o.rep, "live.clean", doctor.Failed)
		if !ok || len(left) != 1 || !strings.Contains(f.Fix, "`git push origin --delete "+left[0]+"`") {
			t.Fatalf("%q\n%s", left, o.rep.Text())
		}
		o.rep = doctor.Report{}
		o.try(t.Context())
		if _, ok := found(o.rep, "live.left", doctor.OK); !ok {
			t.Errorf("the next one:\n%s", o.rep.Text())
		}
		o.clean()
	})
}

// stopping is a forge on which the doctor is interrupted, or killed, when the draft has just been opened.
type stopping struct {
	forge.Forge
	forge.Withdrawer
	then func()
}

func (s stopping) CreatePullRequest(ctx context.Context, n forge.NewPullRequest) (forge.PullRequest, error) {
	p, err := s.Forge.CreatePullRequest(ctx, n)
	if s.then(); ctx.Err() != nil {
		return forge.PullRequest{}, errors.Join(err, ctx.Err())
	}
	return p, err
}

func TestAnInterruptedLiveDoctorTakesItsDraftBack(t *testing.T) {
	trials(t, func(t *testing.T, o *trialOn) {
		ctx, stop := context.WithCancel(t.Context())
		real := o.forge
		o.forge = stopping{real, real.(forge.Withdrawer), stop}
		o.try(ctx)
		if len(o.site.Pulls()) != 1 {
			t.Fatal("the control: nothing was opened")
		}
		o.clean()
		if !o.x.stopped(ctx) || !strings.Contains(o.rep.Text(), "stopped on request") {
			t.Errorf("it does not say so:\n%s", o.rep.Text())
		}
	})
}

// A doctor that is killed leaves its draft and its lease. The next one waits for the lease and then removes the draft; a person's branch
// of such a name, and one of ours that a person changed, stay.
func TestTheNextLiveDoctorRemovesWhatAKilledOneLeftAndNothingOfAPersons(t *testing.T) {
	trials(t, func(t *testing.T, o *trialOn) {
		repo, err := o.forge.Repository(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := o.forge.Remote()
		leave := func(branch string) *trial {
			d := &trial{x: o.x, forge: o.forge, back: o.forge.(forge.Withdrawer), base: repo.DefaultBranch, branch: branch}
			d.remote = git.Remote{URL: r.URL, Username: r.Username, Token: r.Token, Branch: branch, DefaultBranch: repo.DefaultBranch}
			d.open(t.Context())
			if d.pull.Number == 0 {
				t.Fatal(o.rep.Text())
			}
			return d
		}
		remains := leave(trialPrefix + "00000000000000aa")
		if _, err := o.x.s.store.Acquire(t.Context(), remains.remote, trialRef, "doctor-that-was-killed", trialLease); err != nil {
			t.Fatal(err)
		}
		// A person's own branch, a person's commit on top of a trial's, and a draft that a person has made something of.
		theirs, onTop, taken := trialPrefix+"00000000000000bb", trialPrefix+"00000000000000cc", trialPrefix+"00000000000000dd"
		gitAt(t, o.site.GitDir(), "", "branch", theirs, base)
		leave(onTop)
		moved := gitAt(t, o.site.GitDir(), "", "-c", "user.name=rita", "-c", "user.email=rita@example.com", "commit-tree", onTop+"^{tree}", "-p", onTop, "-m", trialSubject)
		gitAt(t, o.site.GitDir(), "", "update-ref", "refs/heads/"+onTop, strings.TrimSpace(moved))
		use := leave(taken)
		title := "My work now"
		if _, err := o.forge.UpdatePullRequest(t.Context(), use.pull.Number, forge.PullRequestEdit{Title: &title}); err != nil {
			t.Fatal(err)
		}

		o.rep = doctor.Report{}
		o.try(t.Context())
		if _, ok := found(o.rep, "live.draft", doctor.Unproved); !ok || len(o.branches()) != 4 {
			t.Errorf("while the lease stands: %q\n%s", o.branches(), o.rep.Text())
		}
		o.rep = doctor.Report{}
		o.x.leftOver(t.Context(), o.forge)
		if f, ok := found(o.rep, "live.left", doctor.Noted); !ok || !strings.Contains(f.Fix, "`proctor doctor --live`") || len(o.branches()) != 4 {
			t.Errorf("without --live: %q\n%s", o.branches(), o.rep.Text())
		}

		o.later = trialLease + time.Minute
		o.prepare()
		o.try(t.Context())
		if f, ok := found(o.rep, "live.left", doctor.OK); !ok || !strings.Contains(f.Text, remains.branch) {
			t.Errorf("when it is over:\n%s", o.rep.Text())
		}
		if got := strings.Join(o.branches(), " "); got != theirs+" "+onTop+" "+taken {
			t.Errorf("these are left: %s\n%s", got, o.rep.Text())
		}
		open := 0
		for _, p := range o.site.Pulls() {
			if p.State == "open" {
				open++
			}
		}
		if open != 2 {
			t.Errorf("%d are open, of people", open)
		}
	})
}
