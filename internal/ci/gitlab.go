package ci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitLab speaks to a GitLab job: outputs become a dotenv file that the job declares as a report.
type gitLab struct {
	job    Job
	getenv func(string) string
	out    Writer
}

func newGitLab(getenv func(string) string, out Writer) (*gitLab, error) {
	h := &gitLab{getenv: getenv, out: out}
	h.job = Job{
		System: "gitlab", Repo: getenv("CI_PROJECT_PATH"), RepoID: number(getenv("CI_PROJECT_ID")),
		Event: getenv("CI_PIPELINE_SOURCE"), Workspace: getenv("CI_PROJECT_DIR"), SHA: getenv("CI_COMMIT_SHA"),
		Actor: getenv("GITLAB_USER_LOGIN"), ActorID: number(getenv("GITLAB_USER_ID")), RunURL: getenv("CI_JOB_URL"),
		Temp: getenv("CI_BUILDS_DIR"), Home: getenv("CI_PROJECT_DIR"), APIURL: getenv("CI_API_V4_URL"), ServerURL: getenv("CI_SERVER_URL"),
	}
	if b := getenv("CI_COMMIT_BRANCH"); b != "" {
		h.job.Ref = "refs/heads/" + b
	}
	for _, v := range []struct{ name, value string }{
		{"CI_PROJECT_PATH", h.job.Repo}, {"CI_PROJECT_DIR", h.job.Workspace}, {"CI_API_V4_URL", h.job.APIURL},
	} {
		if v.value == "" {
			return nil, fmt.Errorf("the runner did not set %s. Next: run this as a GitLab CI job", v.name)
		}
	}
	return h, h.checkedOut()
}

// checkedOut refuses the runner's settings under which the directory does not hold the pipeline's commit. A project or a
// group can set them for every job.
func (h *gitLab) checkedOut() error {
	if s := h.getenv("GIT_STRATEGY"); s == "none" || s == "empty" {
		return fmt.Errorf("GIT_STRATEGY is %s, so this job has no checkout of its commit. Next: set GIT_STRATEGY: clone in the variables of this job", s)
	}
	if h.getenv("GIT_CHECKOUT") == "false" {
		return errors.New("GIT_CHECKOUT is false, so this job's directory may hold another commit. Next: set GIT_CHECKOUT: \"true\" in the variables of this job")
	}
	return nil
}

func (h *gitLab) Job() Job { return h.job }

func (h *gitLab) Input(name string) string { return h.getenv(variable(name)) }

// variable is PROCTOR_<NAME>. An input that begins with the prefix itself, as proctor-id does, is not given it twice: so
// the dispatch names it too.
func variable(input string) string {
	name := strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
	return "PROCTOR_" + strings.TrimPrefix(name, "PROCTOR_")
}

// Mask has no run-time command in GitLab: masked variables are masked by the runner, and everything we print
// goes through the redactor.
func (h *gitLab) Mask(...string) {}

func (h *gitLab) Line(text string)          { fmt.Fprintln(h.out, inert(text)) }
func (h *gitLab) Group(title string)        { fmt.Fprintln(h.out, inert("== "+title)) }
func (h *gitLab) EndGroup()                 {}
func (h *gitLab) Notice(title, text string) { fmt.Fprintln(h.out, inert(title+": "+text)) }
func (h *gitLab) Error(title, text string)  { fmt.Fprintln(h.out, inert("ERROR "+title+": "+text)) }

// Output writes proctor.env in the project's directory, one line a value: dotenv reports have no multi-line values.
func (h *gitLab) Output(values map[string]string) error {
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "PROCTOR_%s=%s\n", strings.ToUpper(strings.ReplaceAll(n, "-", "_")), oneLine(values[n]))
	}
	path := filepath.Join(h.job.Workspace, "proctor.env")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the dotenv report: %w", err)
	}
	return nil
}

// Summary is the merge request's note there; a job has no page of its own.
func (h *gitLab) Summary(string) error { return nil }
