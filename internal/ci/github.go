package ci

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	actions "github.com/sethvargo/go-githubactions"
)

// gitHub speaks to the Actions runner through go-githubactions, which knows the escaping rules. Two of its
// habits are kept out: it panics when a command file is not there, and its delimiter of multi-line values
// is a constant that a hostile value could contain.
type gitHub struct {
	job    Job
	getenv func(string) string
	act    *actions.Action
	out    Writer
	random func([]byte)
}

func newGitHub(getenv func(string) string, out Writer, random func([]byte)) (*gitHub, error) {
	h := &gitHub{getenv: getenv, out: out, random: random, act: actions.New(actions.WithWriter(out), actions.WithGetenv(getenv))}
	h.job = Job{
		System: "github", Repo: getenv("GITHUB_REPOSITORY"), RepoID: number(getenv("GITHUB_REPOSITORY_ID")),
		Event: getenv("GITHUB_EVENT_NAME"), EventPath: getenv("GITHUB_EVENT_PATH"), Workspace: getenv("GITHUB_WORKSPACE"),
		SHA: getenv("GITHUB_SHA"), Ref: getenv("GITHUB_REF"), Actor: getenv("GITHUB_ACTOR"), ActorID: number(getenv("GITHUB_ACTOR_ID")),
		Temp: getenv("RUNNER_TEMP"), Home: getenv("HOME"), APIURL: getenv("GITHUB_API_URL"), ServerURL: getenv("GITHUB_SERVER_URL"),
	}
	if id := getenv("GITHUB_RUN_ID"); id != "" {
		h.job.RunURL = h.job.ServerURL + "/" + h.job.Repo + "/actions/runs/" + id
	}
	for _, v := range []struct{ name, value string }{
		{"GITHUB_REPOSITORY", h.job.Repo}, {"GITHUB_EVENT_NAME", h.job.Event}, {"GITHUB_WORKSPACE", h.job.Workspace},
		{"GITHUB_API_URL", h.job.APIURL}, {"GITHUB_SERVER_URL", h.job.ServerURL},
	} {
		if v.value == "" {
			return nil, fmt.Errorf("the runner did not set %s. Next: run this as a step of a GitHub Actions job, or pass it to the container", v.name)
		}
	}
	return h, nil
}

func (h *gitHub) Job() Job { return h.job }

// Input is a step's input. A composite action (host/action.yml) has to hand its own over by variables, and its shell drops
// names with hyphens: they have the names that GitLab's jobs use.
func (h *gitHub) Input(name string) string {
	if v := h.act.GetInput(name); v != "" {
		return v
	}
	return strings.TrimSpace(h.getenv(variable(name)))
}

func (h *gitHub) Mask(values ...string) {
	for _, v := range values {
		// The runner masks line by line; a short line would mask ordinary words.
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= 6 {
				h.act.AddMask(line)
			}
		}
	}
}

func (h *gitHub) Line(text string)          { fmt.Fprintln(h.out, inert(text)) }
func (h *gitHub) Group(title string)        { h.act.Group(oneLine(title)) }
func (h *gitHub) EndGroup()                 { h.act.EndGroup() }
func (h *gitHub) Notice(title, text string) { h.annotate("notice", title, text) }
func (h *gitHub) Error(title, text string)  { h.annotate("error", title, text) }

func (h *gitHub) annotate(level, title, text string) {
	h.act.IssueCommand(&actions.Command{Name: level, Message: oneLine(text), Properties: actions.CommandProperties{"title": oneLine(title)}})
}

func (h *gitHub) Output(values map[string]string) error {
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		mark := h.delimiter(values[n])
		if err := h.file("output", "GITHUB_OUTPUT", n+"<<"+mark+"\n"+values[n]+"\n"+mark); err != nil {
			return err
		}
	}
	return nil
}

func (h *gitHub) Summary(markdown string) error {
	return h.file("step_summary", "GITHUB_STEP_SUMMARY", markdown)
}

func (h *gitHub) delimiter(value string) string {
	var b [16]byte
	for {
		h.random(b[:])
		if m := "proctor_" + hex.EncodeToString(b[:]); !strings.Contains(value, m) {
			return m
		}
	}
}

// file appends to one of the runner's command files and turns the library's panic into an error. A file that
// cannot be written must not take the run's result with it.
func (h *gitHub) file(name, variable, message string) (err error) {
	path := h.getenv(variable)
	if path == "" {
		return fmt.Errorf("%s is not set, so the step's %s cannot be written. Next: run on a runner of version 2.297 or later", variable, name)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("write %s: %w. Next: mount the runner's file_commands directory into the container", variable, err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("write %s: %v. Next: make the file writable for the user of this step", variable, r)
		}
	}()
	h.act.IssueFileCommand(&actions.Command{Name: name, Message: message})
	return nil
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
