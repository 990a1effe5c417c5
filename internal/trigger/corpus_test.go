package trigger

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const payloads = "../../../shared/corpus/payloads"

// corpusOptions are the names the corpus assumes.
var corpusOptions = Options{Label: "agent-run", Prefix: "/loop", Self: Actor{Login: "sample-loop-app[bot]"}}

type corpusFile struct {
	File   string `json:"file"`
	Event  string `json:"event"`
	Expect string `json:"expect"`
}

func corpus(t testing.TB) []corpusFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(payloads, "manifest.json"))
	if err != nil {
		t.Skipf("the corpus is not beside this checkout (%v); put it at ../shared/corpus to run this test", err)
	}
	var m struct {
		Files []corpusFile `json:"files"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m.Files
}

func parseAny(event string, body []byte, o Options) (Trigger, error) {
	if strings.HasSuffix(event, " Hook") {
		return ParseGitLab(event, body, o)
	}
	return ParseGitHub(event, body, o)
}

// reading is what a payload was understood as, in one line.
func reading(tr Trigger, err error) string {
	var ig *Ignored
	switch {
	case errors.As(err, &ig):
		return "ignored " + string(ig.Reason)
	case errors.Is(err, ErrMalformed):
		return "malformed"
	case err != nil:
		return "error " + err.Error()
	}
	s := string(tr.Kind)
	for _, f := range []struct {
		on   bool
		word string
	}{
		{tr.Actor.Bot, "bot"}, {tr.Issue.State == "closed", "closed"}, {tr.Issue.Locked, "locked"},
		{tr.Issue.IsPull, "pull"}, {tr.Repo.Archived, "archived"}, {tr.Issue.Confidential, "confidential"},
		{tr.Install == 0 && tr.Forge == GitHub, "no-installation"},
	} {
		if f.on {
			s += " " + f.word
		}
	}
	if tr.Command != nil {
		s += " " + tr.Command.Name
	}
	return s
}

func TestEveryCorpusPayloadIsReadAsItsManifestSays(t *testing.T) {
	t.Parallel()
	// Every file that is not here must be Ignored.
	want := map[string]string{
		"github/ping.app-id.json":                                    "ping no-installation",
		"github/ping.organization.json":                              "ping no-installation",
		"github/ping.repository.json":                                "ping no-installation",
		"github/installation.created.json":                           "install",
		"github/installation.created.with-requester.json":            "install",
		"github/installation.deleted.json":                           "install",
		"github/installation.suspend.json":                           "install",
		"github/installation.unsuspend.json":                         "install",
		"github/installation_repositories.added.json":                "install",
		"github/installation_repositories.removed.json":              "install",
		"github/workflow_dispatch.json":                              "error " + ErrNoIssue.Error(),
		"D01.issues.labeled.trigger.json":                            "label",
		"D05.issues.labeled.trigger-by-other-bot.json":               "label bot",
		"D07.issues.labeled.trigger-on-closed-issue.json":            "label closed",
		"D08.issues.labeled.trigger-on-locked-issue.json":            "label locked",
		"D09.issues.labeled.trigger-on-pull-request.json":            "label pull",
		"D10.issues.labeled.body-null.json":                          "label",
		"D12.issues.labeled.no-installation.json":                    "label no-installation",
		"D13.issues.labeled.archived-repository.json":                "label archived",
		"D15.issues.labeled.body-crlf.json":                          "label",
		"D17.issues.labeled.same-as-D16-but-escaped.json":            "label",
		"D20.comment.command.on-issue.json":                          "comment run",
		"D21.comment.command.on-pr.json":                             "comment pull run",
		"D23.comment.command.trailing-space-cr.json":                 "comment run",
		"D30.comment.command.upper-case.json":                        "comment run",
		"D33.comment.command.two-commands.json":                      "comment run",
		"D34.comment.command.association-none.json":                  "comment run",
		"D39.comment.command.on-closed-pr.json":                      "comment closed pull run",
		"D60.workflow_dispatch.inputs-null.json":                     "error " + ErrNoIssue.Error(),
		"D62.workflow_dispatch.inputs-padded.json":                   "dispatch",
		"D72.body-truncated.json":                                    "malformed",
		"D73.body-json-array.json":                                   "malformed",
		"D74.body-empty.json":                                        "malformed",
		"D75.body-utf8-bom.json":                                     "malformed",
		"D78.body-trailing-garbage.json":                             "malformed",
		"D79.body-invalid-utf8-in-title.json":                        "label",
		"D80.body-deeply-nested.json":                                "malformed",
		"D82.default-branch-unusual.json":                            "label",
		"gitlab-derived/G01.issue.label-added.json":                  "label locked",
		"gitlab-derived/G06.issue.closed-with-label.json":            "label closed locked",
		"gitlab-derived/G07.issue.iid-differs-from-id.json":          "label locked",
		"gitlab-derived/G10.note.command-on-issue.json":              "comment closed run",
		"gitlab-derived/G11.note.command-on-mr.json":                 "comment pull run",
		"gitlab-derived/G17.note.gitlab-quick-action-lookalike.json": "comment closed run",
		"gitlab-derived/G41.issue.description-null.json":             "label locked",
		"gitlab-derived/G42.issue.description-600k.json":             "label locked",
	}
	// An end is read for the labels and for who waits, and starts no run of its own.
	want["D56.pull_request.closed.merged.loop-branch.json"] = "closed closed pull"
	want["github/pull_request.closed.json"] = "closed closed pull"
	// Whose branch it is, only the forge can say: the run asks.
	want["D50.review.changes-requested.on-loop-branch.json"] = "review pull"
	want["D51.review.changes-requested.body-null.on-human-branch.json"] = "review pull"
	seen := 0
	for _, f := range corpus(t) {
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join(payloads, f.File))
			if err != nil {
				t.Fatal(err)
			}
			got := reading(parseAny(f.Event, body, corpusOptions))
			expected, ok := want[f.File]
			if !ok {
				expected, ok = want[strings.TrimPrefix(f.File, "github-derived/")]
			}
			if !ok {
				if !strings.HasPrefix(got, "ignored ") {
					t.Errorf("read as %q, want it ignored: %s", got, f.Expect)
				}
				return
			}
			if got != expected {
				t.Errorf("read as %q, want %q: %s", got, expected, f.Expect)
			}
		})
		seen++
	}
	if seen < 100 {
		t.Errorf("only %d payloads in the manifest", seen)
	}
}

func corpusTrigger(t *testing.T, event, file string) Trigger {
	t.Helper()
	corpus(t)
	body, err := os.ReadFile(filepath.Join(payloads, file))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := parseAny(event, body, corpusOptions)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestALabelEventKeepsWhatItSays(t *testing.T) {
	t.Parallel()
	got := corpusTrigger(t, "issues", "github-derived/D01.issues.labeled.trigger.json")
	dev := Actor{Login: "sample-dev", ID: 1001}
	want := Trigger{
		Forge: GitHub, Kind: KindLabel, Event: "issues", Action: "labeled",
		Repo: Repo{Owner: "sample-dev", Name: "Hello-World", ID: 186853002, DefaultBranch: "master"},
		Issue: Issue{
			Number: 1, ID: 444500041, Title: "Round totals half up in the price helper",
			Body:   "## What is wrong\nTotals ending in .005 round down.\n\n## Done when\n- [ ] 0.125 rounds to 0.13\n",
			Author: dev, State: "open", URL: "https://github.com/sample-dev/Hello-World/issues/1", Labels: []string{"bug", "agent-run"},
		},
		Actor: dev, Label: "agent-run", Install: 7000001,
	}
	got.Issue.Labels, want.Issue.Labels = nil, nil
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestGitLabUsesIidsAndTheWholeNamespace(t *testing.T) {
	t.Parallel()
	got := corpusTrigger(t, "Issue Hook", "gitlab-derived/G07.issue.iid-differs-from-id.json")
	if got.Issue.Number != 23 || got.Issue.ID == 23 || got.Repo.ID <= math.MaxInt32 {
		t.Errorf("number %d, id %d, project %d: want the iid 23 and a project id beyond int32", got.Issue.Number, got.Issue.ID, got.Repo.ID)
	}
	mr := corpusTrigger(t, "Note Hook", "gitlab-derived/G11.note.command-on-mr.json")
	if d := cmp.Diff(&ChangeRef{Number: 1, Head: "master", Base: "markdown", HeadSHA: "562e173be03b8ff2efb05345d12df18815438a4b"}, mr.Change); d != "" {
		t.Error(d)
	}
}

func TestNullAndBrokenTextIsNeverTheWordNull(t *testing.T) {
	t.Parallel()
	for event, file := range map[string]string{
		"issues":     "github-derived/D10.issues.labeled.body-null.json",
		"Issue Hook": "gitlab-derived/G41.issue.description-null.json",
	} {
		if got := corpusTrigger(t, event, file); got.Issue.Body != "" || got.Issue.Title == "" {
			t.Errorf("%s: title %q, body %q", file, got.Issue.Title, got.Issue.Body)
		}
	}
	if got := corpusTrigger(t, "issues", "github-derived/D79.body-invalid-utf8-in-title.json"); !strings.Contains(got.Issue.Title, "\ufffd") {
		t.Errorf("title %q has no replacement character", got.Issue.Title)
	}
}

// INV-40, with the control that the very same label in the event's own field does count.
func TestOnlyTheLabelJustAddedCounts(t *testing.T) {
	t.Parallel()
	body := func(added string) []byte {
		return []byte(`{"action":"labeled","label":{"name":"` + added + `"},"issue":{"number":3,"labels":[{"name":"proctor"},{"name":"bug"}]},
			"repository":{"name":"shop","owner":{"login":"octo"}},"sender":{"login":"ann","id":7}}`)
	}
	t.Run("INV-40", func(t *testing.T) {
		t.Parallel()
		if got := reading(ParseGitHub("issues", body("bug"), Options{})); got != "ignored other_label" {
			t.Errorf("another label beside ours: %s", got)
		}
		if got := reading(ParseGitHub("issues", []byte(strings.Replace(string(body("bug")), `"label":`, `"Label":{"name":"proctor"},"label":`, 1)), Options{})); got != "ignored other_label" {
			t.Errorf("a member that differs by case: %s", got)
		}
		if got := reading(ParseGitHub("issues", body("proctor"), Options{})); got != "label no-installation" {
			t.Errorf("control: the trigger label itself: %s", got)
		}
	})
}
