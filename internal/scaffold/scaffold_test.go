package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/detect"
)

func put(t *testing.T, top string, files map[string]string) {
	t.Helper()
	for p, text := range files {
		p = filepath.Join(top, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatExistsStaysAndTheDiffOfItApplies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ was, now string }{
		"a pipeline without an include":   {"test:\n  script: [make]\n", "include:\n  - local: .gitlab/ci/proctor.yml\n\ntest:\n  script: [make]\n"},
		"a list of includes":              {"include:\n  - template: x.yml\ntest: {script: [make]}\n", "include:\n  - local: .gitlab/ci/proctor.yml\n  - template: x.yml\ntest: {script: [make]}\n"},
		"a list that is not indented":     {"include:\n- template: x.yml\n", "include:\n- local: .gitlab/ci/proctor.yml\n- template: x.yml\n"},
		"comments before the list":        {"include: # ours\n\n    # x\n    - template: x.yml\n", "include: # ours\n    - local: .gitlab/ci/proctor.yml\n\n    # x\n    - template: x.yml\n"},
		"no line feed at the end":         {"test: {script: [make]}", "include:\n  - local: .gitlab/ci/proctor.yml\n\ntest: {script: [make]}"},
		"an empty file":                   {"", "include:\n  - local: .gitlab/ci/proctor.yml\n\n"},
		"stages of its own, without test": {"stages: [.pre, build, ship]\nbuild: {script: [make]}\n", "include:\n  - local: .gitlab/ci/proctor.yml\n    inputs: {stage: ship}\n\nstages: [.pre, build, ship]\nbuild: {script: [make]}\n"},
		"the same, in a list":             {"stages: [build]\ninclude:\n- template: x.yml\n", "stages: [build]\ninclude:\n- local: .gitlab/ci/proctor.yml\n  inputs: {stage: build}\n- template: x.yml\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			put(t, top, map[string]string{GitLabPipeline: c.was})
			got, err := Apply(top, Files(GitLab, "", []byte("version: 1\n")))
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(filepath.Join(top, GitLabPipeline)); string(b) != c.was {
				t.Errorf("the file became %q", b)
			}
			pipeline := got[len(got)-1]
			if pipeline.State != Differs || got[0].State != Written {
				t.Fatalf("results %+v", got)
			}
			cmd := exec.Command("git", "apply", "--unsafe-paths", "-")
			cmd.Dir, cmd.Stdin = top, strings.NewReader(pipeline.Diff)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git apply: %v: %s\n%s", err, out, pipeline.Diff)
			}
			b, _ := os.ReadFile(filepath.Join(top, GitLabPipeline))
			if d := cmp.Diff(c.now, string(b)); d != "" {
				t.Errorf("after git apply (-want +got):\n%s", d)
			}
			if again, err := Apply(top, Files(GitLab, "", []byte("version: 1\n"))); err != nil || again[0].State != Same || again[2].State != Same {
				t.Errorf("a second time: %+v, %v", again, err)
			}
		})
	}
}

func TestAnIncludeThatCannotBeExtendedWithCertaintyIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, was := range []string{"include: x.yml\n", "include: {local: x.yml}\n", "include: [a.yml, b.yml]\n", "include:\n  local: x.yml\n"} {
		r := Files(GitLab, "", nil)[2].compare([]byte(was))
		if r.State != Differs || r.Diff != "" || !strings.Contains(r.Ask, "local: .gitlab/ci/proctor.yml") {
			t.Errorf("%q: %+v", was, r)
		}
	}
}

func TestALinkOutOfTheRepositoryIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	top, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(top, ".github")); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(top, Files(GitHub, "", nil)); err == nil {
		t.Error("no error")
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
	// The control: without the link it is written.
	if got, err := Apply(t.TempDir(), Files(GitHub, "", nil)); err != nil || got[0].State != Written {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAStarterLoadsAsWhatWasDetected(t *testing.T) {
	t.Parallel()
	p := detect.Detect(fstest.MapFS{
		"package.json": {Data: []byte(`{"scripts":{"test":"node --test","test:acceptance":"node --test held"}}`)}, "package-lock.json": {Data: []byte("{}")},
		"migrations/1.sql": {}, "tests/acceptance/a.test.js": {},
	})
	settings, assumed := Detected(p)
	want, _ := p.Config()
	got, err := config.Load("starter", Starter(settings, prefixLines(assumed)))
	if err != nil {
		t.Fatalf("%v\n%s", err, Starter(settings, assumed))
	}
	if d := cmp.Diff(want, got); d != "" || len(settings) < 2 {
		t.Errorf("%d settings (-want +got):\n%s", len(settings), d)
	}
}

func prefixLines(lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, "assumed: "+l+"\nversion: 9")
	}
	return out
}
