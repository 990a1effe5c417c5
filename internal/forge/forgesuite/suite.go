// Package forgesuite is the behaviour that every forge.Forge must show, as one suite that runs against
// each client and its test forge. It must never know which forge it is talking to.
package forgesuite

import (
	"context"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-ci/proctor/internal/forge"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// Site is what people and the forge itself do; both test forges have it.
type Site interface {
	AddUser(login, role string) int64
	OpenIssue(title, body, author string) int
	LabelIssue(number int, label, actor string) (forgetest.Delivery, error)
	UnlabelIssue(number int, label, actor string) error
	EditIssue(number int, title, body string) error
	CloseIssue(number int) error
	LockIssue(number int) error
	TransferIssue(number int, to string) error
	Comment(number int, author, body string) (int64, error)
	CommentOnPull(number int, author, body string) (int64, error)
	PullComments(number int) []forgetest.Comment
	OpenPull(title, head, base, author string, fromFork bool) int
	MergePull(number int) error
	EndCI(ci forgetest.CI) error
	StartDisguised(branch, id string) error
	ReviewPull(number int, author, state, body string, lines ...forgetest.ReviewLine) (int64, error)
	ReplyInThread(number, n int, author, body string) error
	ResolveThread(number, n int) error
	Threads(number int) []forgetest.Thread
	Checks(commit string) []forgetest.Check
	Commit(ctx context.Context, branch string, files fs.FS, message string) (string, error)
	Issue(number int) (forgetest.Issue, bool)
	Pulls() []forgetest.Pull
	GitDir() string
	Fail(match string, times int, f forgetest.Fault) error
	Unmet() []string
	Count(match string) int
}

// World is one forge with its client, made fresh for each test.
type World struct {
	Site  Site
	Forge forge.Forge
	// Bot is the login of the client's token.
	Bot string
	// Clock is the client's and the forge's: sleeping moves it.
	Clock *Clock
	// Paths are fault patterns by operation: "create-pull", "answer-pull" (a comment on one), "answer-thread", "check", "delete-branch", "list-pulls", "create-comment", "issue",
	// "update-comment", "comments", "labels" (whatever sets them), "dispatch".
	Paths map[string]string
	// Roles are words for AddUser by forge.Role.
	Roles map[forge.Role]string
	// Workflow file for Dispatch.
	Workflow string
	// Signs tells whether the forge makes and signs commits for the client's token.
	Signs bool
	// Started counts the runs or pipelines that were started.
	Started func() int
}

// Clock moves only when somebody sleeps.
type Clock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

// NewClock starts at a fixed time.
func NewClock() *Clock { return &Clock{at: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Sleep moves the clock and returns at once.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.slept = c.at.Add(d), append(c.slept, d)
	return ctx.Err()
}

// Slept lists the waits so far.
func (c *Clock) Slept() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.slept...)
}

// Files is a small repository for the site's first commit.
func Files() fstest.MapFS {
	return fstest.MapFS{
		"README.md":                     {Data: []byte("# shop\n")},
		"run.sh":                        {Data: []byte("#!/bin/sh\nexit 0\n"), Mode: 0o755},
		".github/workflows/proctor.yml": {Data: []byte(Workflow)},
	}
}

// Workflow is a small workflow with the triggers of the product's own.
const Workflow = `name: proctor
run-name: proctor ${{ inputs.proctor_id }}
on:
  issues: {types: [labeled]}
  workflow_dispatch:
    inputs:
      issue: {required: true, type: string}
      proctor_id: {required: false, type: string}
permissions: {contents: write, issues: write, pull-requests: write}
jobs:
  proctor:
    if: github.event_name == 'workflow_dispatch' || github.event.label.name == 'proctor'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: {persist-credentials: false}
      - uses: proctor-ci/proctor@v1
        id: proctor
        with: {github-token: "${{ github.token }}", issue: "${{ inputs.issue || github.event.issue.number }}"}
`

// Run runs the suite. open makes a fresh world; it registers its own clean-up.
func Run(t *testing.T, open func(t *testing.T) World) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			c.run(t, w)
			if left := w.Site.Unmet(); len(left) > 0 {
				t.Errorf("faults that were armed and never met: %v", left)
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*testing.T, World)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is for a value and an error in one expression.
func got[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// branch pushes a branch with one change and gives its commit.
func (w World) branch(t *testing.T, name string) string {
	t.Helper()
	files := Files()
	files["fix.txt"] = &fstest.MapFile{Data: []byte("fix " + name + "\n")}
	return got(w.Site.Commit(t.Context(), name, files, "Fix"))(t)
}
