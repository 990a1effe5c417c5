package app

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor"
	"github.com/proctor-ci/proctor/internal/ci"
)

type metadata struct {
	Inputs  map[string]struct{ Description, Default string }
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, Run, Shell string
			Env            map[string]string
		}
	}
}

// What another job left in the home of the runner's user is nobody else's artifact.
func TestReportsGoWhereTheJobSays(t *testing.T) {
	t.Parallel()
	home, own := t.TempDir(), t.TempDir()
	for dir, want := range map[string]string{own: own, "": filepath.Join(home, "proctor"), "reports": ""} {
		event := filepath.Join(t.TempDir(), "event.json")
		if err := os.WriteFile(event, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		vars := map[string]string{
			"GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_EVENT_PATH": event, "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_API_URL": "https://api.github.com", "GITHUB_WORKSPACE": t.TempDir(),
			"HOME": home, "RUNNER_TEMP": t.TempDir(), "INPUT_GITHUB-TOKEN": "token-of-the-job", "INPUT_ISSUE": "7", "PROCTOR_REPORT_DIR": dir,
		}
		env := Env{Getenv: func(k string) string { return vars[k] }, Stdout: io.Discard, Random: rand.Reader}
		host, err := ci.Detect(env.Getenv, env.Stdout, env.random)
		if err != nil {
			t.Fatal(err)
		}
		req, err := jobRequest(env, host, loan{})
		if want == "" && (err == nil || !strings.Contains(err.Error(), "absolute path")) || want != "" && (err != nil || req.reports != want) {
			t.Errorf("%q: reports go to %q, %v", dir, req.reports, err)
		}
	}
}

// The two actions are doors to one program: what one takes and gives, the other does.
func TestTheHostActionTakesAndGivesWhatTheContainerActionDoes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../host/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var host, container metadata
	if err := yaml.Unmarshal(raw, &host); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(proctor.ActionMetadata, &container); err != nil {
		t.Fatal(err)
	}
	run := host.Runs.Steps[len(host.Runs.Steps)-1]
	// A runner's home may be that of other jobs as well; a container's is its own.
	handed := map[string]string{"PROCTOR_REPORT_DIR": "${{ runner.temp }}/proctor-report"}
	for name, in := range container.Inputs {
		if d := cmp.Diff(in, host.Inputs[name]); d != "" {
			t.Errorf("input %s (-container +host):\n%s", name, d)
		}
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		handed["PROCTOR_"+strings.TrimPrefix(variable, "PROCTOR_")] = "${{ inputs." + name + " }}"
	}
	if d := cmp.Diff(handed, run.Env); d != "" {
		t.Errorf("what the program is handed (-container's inputs +host's step):\n%s", d)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(container.Outputs)), slices.Sorted(maps.Keys(host.Outputs))); d != "" {
		t.Errorf("outputs (-container +host):\n%s", d)
	}
	for name, out := range host.Outputs {
		if out.Value != "${{ steps."+run.ID+".outputs."+name+" }}" {
			t.Errorf("output %s is %s", name, out.Value)
		}
	}
}

// gh is a release server and a verifier that say what the test wants.
const gh = `#!/bin/sh
case "$1 $2" in
"release list") echo v0.2.1;;
"release download") [ "$3" = "$WANT" ] || { echo "no release $3" >&2; exit 1; }
	while [ $# -gt 1 ]; do [ "$1" != --dir ] || dir=$2; shift; done
	cp "$RELEASE"/* "$dir";;
"attestation verify") echo "$@" >"$RUNNER_TEMP/asked"; exit "${ATTESTED:-0}";;
*) echo "gh $*: not known" >&2; exit 1;;
esac
`

func TestTheHostActionInstallsOnlyWhatIsCheckedAndWitnessed(t *testing.T) {
	t.Parallel()
	program := "#!/bin/sh\ntouch \"$RUNNER_TEMP/ran\"\n"
	sum := fmt.Sprintf("%x  proctor_linux_amd64\n", sha256.Sum256([]byte(program)))
	cases := map[string]struct {
		env       map[string]string
		file      string
		sums      string
		without   string
		installed string
		says      string
	}{
		"the action's own tag":                {env: map[string]string{"PROCTOR_ACTION_REF": "v0.2.0", "WANT": "v0.2.0"}, installed: "proctor-v0.2.0"},
		"a moving major tag":                  {env: map[string]string{"PROCTOR_ACTION_REF": "v0", "WANT": "v0.2.1"}, installed: "proctor-v0.2.1"},
		"a version that is asked for":         {env: map[string]string{"PROCTOR_ACTION_REF": strings.Repeat("a", 40), "PROCTOR_VERSION": "v0.2.0", "WANT": "v0.2.0"}, installed: "proctor-v0.2.0"},
		"a commit tells no version":           {env: map[string]string{"PROCTOR_ACTION_REF": strings.Repeat("a", 40)}, says: "set the input version"},
		"a version that runs a shell":         {env: map[string]string{"PROCTOR_VERSION": "v0.2.0;touch ran"}, says: "names no release"},
		"a version that speaks to the runner": {env: map[string]string{"PROCTOR_VERSION": "v0.2.0\n::add-mask::x"}, says: `"v0.2.0???add-mask??x" names no release`},
		"other bytes":                         {env: map[string]string{"PROCTOR_VERSION": "v0.2.0", "WANT": "v0.2.0"}, file: program + "# one more line\n", says: "is not what its checksums.txt says"},
		"no line for this file":               {env: map[string]string{"PROCTOR_VERSION": "v0.2.0", "WANT": "v0.2.0"}, sums: strings.Replace(sum, "amd64", "arm64", 1), says: "is not what its checksums.txt says"},
		"no statement":                        {env: map[string]string{"PROCTOR_VERSION": "v0.2.0", "WANT": "v0.2.0", "ATTESTED": "1"}, says: "no valid statement"},
		"no release":                          {env: map[string]string{"PROCTOR_VERSION": "v0.9.9", "WANT": "v0.2.0"}, says: "could not be downloaded"},
		"no means to check":                   {env: map[string]string{"PROCTOR_VERSION": "v0.2.0", "WANT": "v0.2.0"}, without: "gh", says: "the runner has no gh"},
		"another system":                      {env: map[string]string{"PROCTOR_VERSION": "v0.2.0", "RUNNER_OS": "macOS"}, says: "agents cannot be confined"},
		"an architecture without ours":        {env: map[string]string{"PROCTOR_VERSION": "v0.2.0", "RUNNER_ARCH": "ARM"}, says: "no release for the architecture ARM"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bin, release, temp := filepath.Join(dir, "bin"), filepath.Join(dir, "release"), filepath.Join(dir, "temp")
			for _, d := range []string{bin, release, temp} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			put := func(path, text string) {
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			put(filepath.Join(release, "proctor_linux_amd64"), first(c.file, program))
			put(filepath.Join(release, "checksums.txt"), first(c.sums, sum))
			if c.without != "gh" {
				put(filepath.Join(bin, "gh"), gh)
			}
			env := merged(map[string]string{"PATH": bin + ":/usr/bin:/bin", "RELEASE": release, "RUNNER_TEMP": temp, "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64", "GITHUB_PATH": filepath.Join(dir, "path")}, c.env)
			cmd := exec.CommandContext(t.Context(), "bash", "../../host/install")
			for k, v := range env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			out, err := cmd.CombinedOutput()
			if _, ran := os.Stat(filepath.Join(temp, "ran")); ran == nil {
				t.Error("what was downloaded was run")
			}
			path, _ := os.ReadFile(filepath.Join(dir, "path"))
			if c.installed == "" {
				if err == nil || !strings.Contains(string(out), c.says) || !strings.Contains(string(out), "Next: ") {
					t.Errorf("%v, want an error that says %q:\n%s", err, c.says, out)
				}
				if left, _ := filepath.Glob(filepath.Join(temp, "proctor-*")); len(left) > 0 || len(path) > 0 {
					t.Errorf("%v was left, PATH got %q", left, path)
				}
				return
			}
			want := filepath.Join(temp, c.installed)
			if err != nil || string(path) != want+"\n" {
				t.Fatalf("%v, PATH got %q, want %q:\n%s", err, path, want, out)
			}
			for _, f := range []string{"proctor", ActionLink} {
				if got, err := os.ReadFile(filepath.Join(want, f)); err != nil || string(got) != program {
					t.Errorf("%s: %v", f, err)
				}
			}
			asked, _ := os.ReadFile(filepath.Join(temp, "asked"))
			if !strings.Contains(string(asked), "--signer-workflow proctor-ci/proctor/.github/workflows/release.yml --source-ref refs/tags/"+c.env["WANT"]) {
				t.Errorf("provenance was asked for with %q", asked)
			}
		})
	}
}
