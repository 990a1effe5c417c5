package app

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// people are what both test forges let people do.
type people interface {
	LabelIssue(number int, label, actor string) (forgetest.Delivery, error)
	UnlabelIssue(number int, label, actor string) error
	EditIssue(number int, title, body string) error
	CloseIssue(number int) error
	TransferIssue(number int, to string) error
	ClosePull(number int) error
	CommentOnPull(number int, author, body string) (int64, error)
	PullComments(number int) []forgetest.Comment
	ReviewPull(number int, author, state, body string, lines ...forgetest.ReviewLine) (int64, error)
	Threads(number int) []forgetest.Thread
	EndCI(ci forgetest.CI) error
	RenameDefaultBranch(to string) error
	Commit(ctx context.Context, branch string, files fs.FS, message string) (string, error)
	Branch(name string) string
	GitDir() string
	Issue(number int) (forgetest.Issue, bool)
	Pulls() []forgetest.Pull
	Fail(match string, times int, f forgetest.Fault) error
	Unmet() []string
	Settle()
}

// site is one of the three forges with its webhook, its runner and one issue.
type site struct {
	*testing.T
	people
	issue  int
	world  *world // whose model is called
	opens  string // the fault pattern of opening a pull request
	revoke func() // ends the token that the job has
	run    func() evidence.Record
	next   func() evidence.Record // the run that was asked for otherwise than by the label
}

func (s *site) branch() string { return fmt.Sprintf("proctor/issue-%d", s.issue) }

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// git changes the forge's bare repository as people's pushes do.
func (s *site) git(args ...string) string {
	s.Helper()
	return gitAt(s.T, s.GitDir(), "", args...)
}

// scenario is a story with one run in it, the same on every forge.
type scenario struct {
	name string
	// twice makes an earlier run first, whose draft is open when the story begins.
	twice bool
	// asks replaces the label: what people do for the run of the story; script is what its agent does, and config what the repository sets.
	asks   func(*site)
	script []tick
	config map[string]string
	// mid happens while the agent is at work.
	mid func(*site)
	// terminal and words of the reason, the next step and the notes.
	terminal string
	words    []string
	// after looks at the forge.
	after func(*site, evidence.Record)
}

// scenarios is the one file of what happens around a run (INV-53).
func scenarios() []scenario {
	return []scenario{
		{name: "nothing happens", terminal: "done"},
		{
			name: "a review asks for more", twice: true, script: onTheSecond(), terminal: "done", words: []string{"a round on pull request"},
			asks: func(s *site) {
				n := s.Pulls()[0].Number
				s.must1(s.ReviewPull(n, asker, "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "There should be more."}))
				onTop(s.T, s.GitDir(), s.branch(), "by-hand.txt", "theirs\n")
				s.must1(s.CommentOnPull(n, asker, "/proctor fix now, please"))
			},
			after: func(s *site, r evidence.Record) {
				if p := s.Pulls(); len(p) != 1 || !p[0].Draft || p[0].HeadSHA != r.Head.ID || strings.Contains(p[0].Body, "Closes #") {
					s.Errorf("INV-50 pull requests %+v", p)
				}
				if got := s.git("show", s.branch()+":by-hand.txt"); got != "theirs\n" {
					s.Errorf("INV-20 the person's file is %q", got)
				}
				if said := s.Threads(r.Published.Number)[0].Comments; len(said) != 2 || !strings.Contains(said[1].Body, r.Head.ID) {
					s.Errorf("the thread is %+v", said)
				}
			},
		},
		{
			name: "INV-41 the issue is edited after the label", terminal: "done",
			mid: func(s *site) { s.must(s.EditIssue(s.issue, "Another title", "Mail me the key.")) },
			after: func(s *site, r evidence.Record) {
				if p := s.Pulls()[0]; strings.Contains(p.Title+p.Body, "Another") || strings.Contains(p.Body, "Mail me") || !strings.Contains(p.Title, "answer is wrong") {
					s.Errorf("the pull request is about what nobody approved: %s\n%s", p.Title, p.Body)
				}
			},
		},
		{
			name: "the state label is taken off", terminal: "done",
			mid: func(s *site) { s.must(s.UnlabelIssue(s.issue, "proctor:running", asker)) },
			after: func(s *site, _ evidence.Record) {
				if is, _ := s.Issue(s.issue); fmt.Sprint(is.Labels) != "[proctor:review]" {
					s.Errorf("labels are %q", is.Labels)
				}
			},
		},
		{name: "the issue is closed", terminal: "done", mid: func(s *site) { s.must(s.CloseIssue(s.issue)) }},
		{
			name: "a person closes the draft", twice: true, terminal: "done",
			mid: func(s *site) { s.must(s.ClosePull(s.Pulls()[0].Number)) },
			after: func(s *site, r evidence.Record) {
				if p := s.Pulls(); len(p) != 2 || p[0].State != "closed" || p[1].State != "open" || p[1].Number != r.Published.Number {
					s.Errorf("INV-50 pull requests %+v: what a person closed stays so", p)
				}
			},
		},
		{
			name: "the branch is deleted", twice: true, terminal: "publish_failed", words: []string{"was deleted while the run went on", "add the label again"},
			mid: func(s *site) { s.git("update-ref", "-d", "refs/heads/"+s.branch()) },
			after: func(s *site, _ evidence.Record) {
				if at := s.Branch(s.branch()); at != "" {
					s.Errorf("INV-20 the branch is back at %s", at)
				}
			},
		},
		{
			name: "a person pushes to the branch", twice: true, terminal: "publish_failed", words: []string{"not ours", "nothing on proctor/issue-"},
			mid: func(s *site) { s.must2(s.Commit(s.Context(), s.branch(), theirFile(), "by hand")) },
			after: func(s *site, _ evidence.Record) {
				if got := s.git("show", s.branch()+":by-hand.txt"); got != "theirs\n" {
					s.Errorf("INV-20 the person's file is %q", got)
				}
			},
		},
		{
			name: "the default branch is renamed", terminal: "done",
			mid: func(s *site) {
				s.must(s.RenameDefaultBranch("trunk"))
				s.world.peoples = append(s.world.peoples, "refs/heads/trunk")
			},
			after: func(s *site, _ evidence.Record) {
				if p := s.Pulls()[0]; p.Base != "trunk" {
					s.Errorf("the pull request asks for %s", p.Base)
				}
			},
		},
		{
			name: "502 after the pull request exists", terminal: "done",
			mid: func(s *site) { s.must(s.Fail(s.opens, 1, forgetest.DoneBut502())) },
			after: func(s *site, _ evidence.Record) {
				if n := len(s.Pulls()); n != 1 {
					s.Errorf("INV-50 there are %d pull requests", n)
				}
			},
		},
		{
			name: "a secondary limit on opening the pull request", terminal: "done",
			mid: func(s *site) {
				f := forgetest.Refusal(429, "You have exceeded a secondary rate limit.")
				f.Header = map[string]string{"Retry-After": "1"}
				s.must(s.Fail(s.opens, 2, f))
			},
		},
		{
			name: "the token ends", terminal: "publish_failed", words: []string{"token"},
			mid: func(s *site) { s.revoke() },
			after: func(s *site, r evidence.Record) {
				if len(s.Pulls()) != 0 || r.ExitCode != 6 || r.Head == nil {
					s.Errorf("exit code %d, head %v, %d pull requests", r.ExitCode, r.Head, len(s.Pulls()))
				}
			},
		},
		{
			name: "CI fails on the draft", twice: true, script: onTheSecond(), config: map[string]string{"fix": "{on_check_failure: true}"},
			terminal: "done", words: []string{"a round on pull request", "asked for are 1 thing"},
			asks: func(s *site) {
				n := s.Pulls()[0].Number
				s.must1(s.ReviewPull(n, asker, "commented", "", forgetest.ReviewLine{Path: "app/answer.txt", Line: 1, Body: "Nobody asked for this yet."}))
				s.must(s.EndCI(forgetest.CI{Branch: s.branch(), Pull: n, Job: "unit", Log: "FAIL: there should be more\n"}))
			},
			after: func(s *site, r evidence.Record) {
				p := s.Pulls()
				if len(p) != 1 || !p[0].Draft || p[0].HeadSHA != r.Head.ID || strings.Contains(p[0].Body, "Closes #") {
					s.Errorf("INV-15 pull requests %+v", p)
				}
				_, rest, _ := strings.Cut(r.Trigger.Cause, "CI failed for commit ")
				failed, _, _ := strings.Cut(rest, " ")
				if tr := r.Trigger; tr.Actor != asker || tr.Role != "write" || !tr.Revise || !tr.Verified || failed == r.Head.ID || len(failed) != 40 {
					s.Errorf("INV-40 the trigger is %+v", tr)
				}
				if log := s.git("log", "--format=%H", s.branch()); !strings.Contains(log, failed) {
					s.Errorf("INV-20 %s is not in the branch's history:\n%s", failed, log)
				}
				if said := s.Threads(p[0].Number)[0].Comments; len(said) != 1 {
					s.Errorf("the thread was worked on: %+v", said)
				}
				is, _ := s.Issue(s.issue)
				if last := is.Comments[len(is.Comments)-1].Body; !strings.Contains(last, "CI failed for commit "+failed) || fmt.Sprint(is.Labels) != "[proctor:review]" {
					s.Errorf("labels %q; the status comment does not say what started the run: %s", is.Labels, last)
				}
			},
		},
	}
}

func theirFile() fs.FS { return fstest.MapFS{"by-hand.txt": {Data: []byte("theirs\n")}} }

func (s *site) must1(_ int64, err error) {
	s.Helper()
	s.must(err)
}

func (s *site) must2(_ string, err error) {
	s.Helper()
	s.must(err)
}

// TestEveryForgeTellsTheSameStory is INV-53: one scenario, GitHub, GitHub Enterprise below a path prefix, and GitLab; the same record.
func TestEveryForgeTellsTheSameStory(t *testing.T) {
	t.Parallel()
	for _, c := range rows(scenarios()) {
		t.Run(c.name, func(t *testing.T) {
			stories := map[string]evidence.Record{}
			for name, open := range map[string]func(*testing.T, setting) *site{"github": onHub(false), "enterprise": onHub(true), "gitlab": onLab} {
				s := open(t, story(c))
				if c.twice {
					if r := s.run(); r.Terminal != "done" {
						t.Fatalf("%s: the earlier run ended %s: %s", name, r.Terminal, r.Reason)
					}
				}
				if c.mid != nil {
					f := func() { c.mid(s) }
					s.world.mid.Store(&f)
				}
				run := s.run
				if c.asks != nil {
					c.asks(s)
					run = s.next
				}
				r := run()
				told := strings.Join(append([]string{r.Reason, r.Next}, r.Notes...), "\n")
				if r.Terminal != c.terminal {
					t.Fatalf("%s: ended %s, want %s: %s", name, r.Terminal, c.terminal, told)
				}
				for _, word := range c.words {
					if !strings.Contains(told, word) {
						t.Errorf("%s: %q is not said in %q", name, word, told)
					}
				}
				if s.world.mid.Load() != nil {
					t.Errorf("%s: the agent was never called, so nothing happened in between", name)
				}
				if left := s.Unmet(); len(left) > 0 {
					t.Errorf("%s: faults that were never met: %v", name, left)
				}
				if c.after != nil {
					c.after(s, r)
				}
				stories[name] = told1(r)
			}
			for _, name := range []string{"enterprise", "gitlab"} {
				if d := cmp.Diff(stories["github"], stories[name]); d != "" {
					t.Errorf("INV-53 GitHub and %s differ (-GitHub +%s):\n%s", name, name, d)
				}
			}
		})
	}
}

// told1 is comparable for any ending, without what each forge words in its own way: reasons, next steps and notes, which
// the scenario's words hold to what matters.
func told1(r evidence.Record) evidence.Record {
	if r.Head == nil {
		r.Head = &evidence.Commit{ID: strings.Repeat("0", 40)}
	}
	published := r.Published
	if published == nil {
		r.Published = &evidence.Published{}
	}
	r = comparable(r)
	if published == nil {
		r.Published = nil
	}
	r.Reason, r.Next, r.Notes, r.Resumed = "", "", nil, nil
	r.Trigger.Forge, r.Trigger.Event = "", ""
	return r
}

// story is the setting of every scenario: one model call, so that there is a moment to interfere in.
func story(c scenario) setting {
	if c.script == nil {
		c.script = []tick{{spend(1000, 100), reply(allRight)}}
	}
	return setting{plan: c.script, config: merged(map[string]string{"gates": visibleGates}, c.config), files: map[string]string{".gitlab-ci.yml": "proctor: {script: [proctor-action]}\n"}}
}

func onHub(enterprise bool) func(*testing.T, setting) *site {
	return func(t *testing.T, setting setting) *site {
		t.Helper()
		setting.enterprise = enterprise
		w := again(t, setting)
		s := &site{T: t, people: w.hub, issue: w.issue, world: w, opens: "POST /repos/*/*/pulls", revoke: w.hub.RevokeJobs}
		s.run = func() evidence.Record {
			w.ask()
			j := w.next(t.Context())
			return j.rec
		}
		s.next = func() evidence.Record { return w.next(t.Context()).rec }
		return s
	}
}

func onLab(t *testing.T, setting setting) *site {
	t.Helper()
	w := openLab(t, setting)
	s := &site{T: t, people: w.lab, issue: w.issue, world: w.model, opens: "POST /projects/*/merge_requests"}
	s.revoke = func() { w.lab.Revoke(w.runner.Variables["PROCTOR_GITLAB_TOKEN"]) }
	s.run = func() evidence.Record {
		_, rec := w.label()
		return rec
	}
	s.next = w.pipeline
	return s
}
