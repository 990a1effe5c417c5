package prompt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/prompt"
)

type corpusCase struct {
	ID          string   `json:"id"`
	Body        string   `json:"body"`
	Title       string   `json:"title"`
	Visible     []string `json:"visible_must_reach"`
	Hidden      []string `json:"hidden_must_not_reach"`
	Undecided   []string `json:"undecided"`
	Criteria    []string `json:"criteria"`
	Open        []string `json:"tasks_open"`
	Done        []string `json:"tasks_done"`
	DependsOn   []string `json:"depends_on"`
	AcceptAlso  []string `json:"accept_also"`
	NotDepends  []string `json:"not_depends_on"`
	IssueNumber int      `json:"issue_number"`
}

func corpus(t *testing.T) (dir string, cases []corpusCase) {
	t.Helper()
	dir = filepath.Join("..", "..", "..", "shared", "corpus", "issue-bodies")
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Skipf("the corpus is not here (%v); put it at %s to run this test", err, dir)
	}
	var file struct{ Cases []corpusCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return dir, file.Cases
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// INV-42: the corpus gives the expected reading.
func TestCorpusBodiesAreReadAsAPersonSeesThem(t *testing.T) {
	t.Parallel()
	dir, cases := corpus(t)
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			body, title := readFile(t, dir, c.Body), readFile(t, dir, c.Title)
			text, removed := prompt.Visible(body)
			for _, s := range c.Visible {
				if !strings.Contains(text, s) {
					t.Errorf("%q does not reach the agent", s)
				}
			}
			for _, s := range c.Hidden {
				if strings.Contains(text, s) {
					t.Errorf("%q reaches the agent", s)
				}
				if !strings.Contains(body, s) {
					t.Errorf("control: %q is not in the body at all", s)
				}
			}
			if len(c.Hidden) > 0 && len(removed) == 0 {
				t.Error("nothing is listed as removed")
			}
			if !utf8.ValidString(text) || strings.ContainsRune(text, '\r') {
				t.Error("not valid UTF-8 with LF line ends")
			}
			if got, _ := prompt.VisibleTitle(title); got != strings.TrimRight(title, "\r\n") {
				t.Errorf("title: %q became %q", title, got)
			}
			checkTasks(t, c, prompt.Criteria(body))
			checkDepends(t, c, prompt.DependsOn(body, c.IssueNumber))
		})
	}
}

func checkTasks(t *testing.T, c corpusCase, got []prompt.Criterion) {
	t.Helper()
	optional := map[string]bool{}
	for _, s := range c.Undecided {
		optional[s] = true
	}
	var open, done []string
	for _, g := range got {
		switch {
		case optional[g.Text]:
		case g.Done:
			done = append(done, g.Text)
		default:
			open = append(open, g.Text)
		}
	}
	var want []string
	for _, s := range append(c.Criteria, c.Open...) {
		if !optional[s] {
			want = append(want, s)
		}
	}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("open tasks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Done, done); diff != "" {
		t.Errorf("done tasks (-want +got):\n%s", diff)
	}
}

func checkDepends(t *testing.T, c corpusCase, refs []prompt.Ref) {
	t.Helper()
	got := map[string]bool{}
	for _, r := range refs {
		got[r.String()] = true
	}
	for _, s := range c.DependsOn {
		if !got[s] {
			t.Errorf("%s is not found as a dependency", s)
		}
		delete(got, s)
	}
	for _, s := range c.NotDepends {
		if got[s] {
			t.Errorf("%s is no dependency", s)
		}
	}
	for s := range got {
		if !strings.Contains(strings.Join(c.AcceptAlso, "\n"), s) {
			t.Errorf("%s is not expected as a dependency", s)
		}
	}
}

func TestLineEndsDoNotChangeTheReading(t *testing.T) {
	t.Parallel()
	dir, _ := corpus(t)
	crlf, _ := prompt.Visible(readFile(t, dir, "11-crlf.md"))
	lf, _ := prompt.Visible(readFile(t, dir, "11-crlf.lf.md"))
	if diff := cmp.Diff(lf, crlf); diff != "" {
		t.Errorf("(-lf +crlf):\n%s", diff)
	}
}
