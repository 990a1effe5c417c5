//go:build e2e

package act

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/agent/agenttest"
	"github.com/proctor-ci/proctor/internal/demo"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/trigger"
	"github.com/proctor-ci/proctor/templates"
)

// gh serves one release and finds its statement, in place of github.com.
const gh = `#!/bin/sh
case "$1 $2" in
"release list") echo v0.9.0;;
"release download")
	[ "$3" = v0.9.0 ] || { echo "no release $3" >&2; exit 1; }
	while [ $# -gt 1 ]; do [ "$1" != --dir ] || dir=$2; shift; done
	cp @RELEASE@/* "$dir";;
"attestation verify") ;;
*) echo "gh $*: not known" >&2; exit 1;;
esac
`

// released makes a directory for PATH whose gh has this build as its release, from the directory that is given, too.
func released(t *testing.T) (bin, release string) {
	t.Helper()
	bin, release = t.TempDir(), t.TempDir()
	program, err := os.ReadFile(absolute(t, "bin/proctor"))
	if err != nil {
		t.Fatalf("%v. %s", err, missing)
	}
	for path, text := range map[string][]byte{
		filepath.Join(release, "proctor_linux_amd64"): program,
		filepath.Join(release, "checksums.txt"):       fmt.Appendf(nil, "%x  proctor_linux_amd64\n", sha256.Sum256(program)),
		filepath.Join(bin, "gh"):                      []byte(strings.ReplaceAll(gh, "@RELEASE@", release)),
	} {
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin, release
}

// stage is a forge with an issue that was just labelled, the run that its workflow is owed, and a model.
type stage struct {
	hub   *forgetest.GitHub
	run   forgetest.Run
	token string
	model string // its base URL
}

func newStage(t *testing.T) stage {
	t.Helper()
	files := filepath.Join(t.TempDir(), "files")
	scenario, ok := demo.FindScenario(demo.HeldOut)
	if !ok {
		t.Fatal("the demo has no such story")
	}
	if err := demo.Write(files, demo.Script, "", scenario); err != nil {
		t.Fatal(err)
	}
	hub, err := forgetest.NewGitHub(forgetest.Options{Dir: filepath.Join(t.TempDir(), "forge"), Owner: "octo", Name: "till", Files: os.DirFS(files), WorkflowTriggers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	hub.AddUser("maya", "write")
	if _, err := hub.LabelIssue(hub.OpenIssue(demo.Title, demo.Body, "maya"), trigger.DefaultLabel, "maya"); err != nil {
		t.Fatal(err)
	}
	run, err := hub.NextRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	model := agenttest.NewModel(demo.Model(demo.Script))
	at, err := model.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	// The rights that the template's job asks for.
	rights := map[string]string{"contents": "write", "issues": "write", "pull_requests": "write", "actions": "read", "checks": "write"}
	return stage{hub, run, hub.NewToken(forgetest.Token{Job: true, Permissions: rights}), at}
}

// session is the run as act takes it. What a runner tells of itself and act does not is handed over by --env.
func (s stage) session(t *testing.T, workflow string) session {
	t.Helper()
	return session{
		workflow: workflow, event: s.run.Event, payload: string(s.run.Payload), repositories: local(t, workflow, ours(t)),
		secrets: map[string]string{"GITHUB_TOKEN": s.token, "ANTHROPIC_API_KEY": "sk-e2e-" + s.token},
		env: map[string]string{
			"ANTHROPIC_BASE_URL": s.model, "GITHUB_SERVER_URL": s.hub.URL(), "GITHUB_API_URL": s.hub.APIURL(), "GITHUB_REPOSITORY": s.hub.Owner() + "/" + s.hub.Repo(), "GITHUB_REPOSITORY_OWNER": s.hub.Owner(),
			"GITHUB_RUN_ID": fmt.Sprint(s.run.ID), "GITHUB_REF": s.run.Ref, "SHA_REF": s.run.SHA, "GITHUB_REF_NAME": strings.TrimPrefix(s.run.Ref, "refs/heads/"), "GITHUB_REF_TYPE": "branch",
		},
		flags: []string{"--actor", s.run.Actor},
	}
}

// freePort is one that nothing listens on just now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestALabelledIssueBecomesADraftByTheTemplateAndTheHostAction(t *testing.T) {
	s := newStage(t)
	job := s.session(t, string(templates.GitHubWorkflow))
	job.path, _ = released(t)
	job.artifacts, job.port = filepath.Join(t.TempDir(), "artifacts"), freePort(t)
	job.env["NODE_PATH"] = absolute(t, "e2e/act/node_modules")
	o := job.run(t)
	if o.err != nil || o.jobs()["proctor"] != "success" {
		t.Fatalf("%v, %v\n%s", o.err, o.jobs(), o.said())
	}
	commit := s.proved(t, o)
	kept := unpacked(t, job.artifacts)
	if !strings.Contains(kept[evidence.RecordFile], commit) || !strings.Contains(kept[evidence.ReportFile], commit) {
		t.Errorf("the artifact does not tell of %s: it holds %q", commit, slices.Sorted(maps.Keys(kept)))
	}
}

func TestAProgramThatIsNotTheReleasesIsNotRun(t *testing.T) {
	s := newStage(t)
	job := s.session(t, string(templates.GitHubWorkflow))
	bin, release := released(t)
	write(t, filepath.Join(release, "proctor_linux_amd64"), "#!/bin/sh\necho it ran\n")
	job.path = bin
	o := job.run(t)
	if said := o.said(); o.err == nil || strings.Contains(said, "it ran") || !strings.Contains(said, "is not what its checksums.txt says") {
		t.Errorf("%v\n%s", o.err, said)
	}
	if pulls := s.hub.Pulls(); len(pulls) > 0 {
		t.Errorf("pull requests: %+v", pulls)
	}
}

// proved checks the draft on the forge and what the job told of it, and gives its commit.
func (s stage) proved(t *testing.T, o outcome) string {
	t.Helper()
	pulls := s.hub.Pulls()
	if len(pulls) != 1 || !pulls[0].Draft || pulls[0].State != "open" {
		t.Fatalf("pull requests: %+v\n%s", pulls, o.said())
	}
	out := o.outputs()
	for name, want := range map[string]string{"terminal": "done", "pull-request": fmt.Sprint(pulls[0].Number), "pull-request-url": pulls[0].URL, "branch": pulls[0].Head, "commit": pulls[0].HeadSHA, "ticks": "2"} {
		if out[name] != want {
			t.Errorf("output %s is %q, want %q", name, out[name], want)
		}
	}
	if summary := o.summary(); !strings.Contains(summary, out["run"]) || out["run"] == "" {
		t.Errorf("the summary tells nothing of the run %q:\n%s", out["run"], summary)
	}
	return pulls[0].HeadSHA
}

// unpacked are the files of the one artifact that act's server was given.
func unpacked(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.zip"))
	if err != nil || len(found) != 1 {
		t.Fatalf("artifacts: %q, %v", found, err)
	}
	z, err := zip.OpenReader(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}
