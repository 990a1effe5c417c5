package app

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/doctor"
	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// practice is a clone of the world's repository with one doctor in it, who has a token of his own.
type practice struct {
	*world
	clone string
	env   map[string]string
}

func openPractice(t *testing.T, s setting) practice {
	t.Helper()
	p := practice{world: open(t, s), env: map[string]string{}}
	p.clone = filepath.Join(p.dir, "clone")
	if text, err := exec.Command("git", "clone", "-q", p.hub.URL()+"/octo/shop", p.clone).CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, text)
	}
	p.env["GITHUB_TOKEN"] = p.hub.NewToken(forgetest.Token{Login: asker})
	return p
}

// sees is what doctor finds, by check, and its exit code.
func (p practice) sees() (doctor.Report, int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.runner.Actions[0].Binary, "doctor", "--json")
	cmd.Dir = p.clone
	for k, v := range merged(map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": p.dir, "TMPDIR": p.t.TempDir(), "USER": asker,
		"GITHUB_API_URL": p.hub.APIURL(), "GITHUB_SERVER_URL": p.hub.URL(),
	}, part(partCLI), p.env) {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	var rep doctor.Report
	if err := json.Unmarshal(out, &rep); err != nil {
		p.t.Fatalf("%v\n%s\n%s", err, out, errs.String())
	}
	return rep, cmd.ProcessState.ExitCode()
}

// commit changes the base commit; an empty text removes the file.
func (p practice) commit(files map[string]string) {
	p.t.Helper()
	d := &desk{t: p.t, dir: p.clone}
	for path, text := range files {
		at := filepath.Join(p.clone, path)
		if text == "" {
			if err := os.Remove(at); err != nil {
				p.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	d.git(p.clone, "add", "-A")
	d.git(p.clone, "-c", "user.name=maya", "-c", "user.email=maya@example.com", "commit", "-qm", "Mend it")
}

const configFileName = ".github/proctor.yml"

// set is a file of configuration with keys changed.
func set(keys map[string]string) map[string]string {
	return map[string]string{configFileName: configuration(keys)}
}

// One thing is wrong at a time: doctor names it with exit 1, what it printed is done, and it finds nothing any more.
func TestDoctorNamesWhatIsWrongAndWhatMendsIt(t *testing.T) {
	gates := func(change ...string) map[string]string {
		return map[string]string{"gates": strings.NewReplacer(change...).Replace(bothGates)}
	}
	table := map[string]struct {
		broken func(practice)
		check  string
		fix    string // a part of what is printed
		mend   func(practice)
	}{
		"a key that is misspelt": {
			func(p practice) { p.commit(set(map[string]string{"stopps": "{max_ticks: 3}"})) }, "config", "stops", func(p practice) { p.commit(set(nil)) },
		},
		"two configurations": {
			func(p practice) { p.commit(map[string]string{"proctor.yml": "version: 1\n"}) }, "config", "keep one of them", func(p practice) { p.commit(map[string]string{"proctor.yml": ""}) },
		},
		"a configuration that is not committed": {
			func(p practice) {
				if err := os.WriteFile(filepath.Join(p.clone, configFileName), []byte(configuration(map[string]string{"fix": "{max_rounds: 1}"})), 0o644); err != nil {
					p.t.Fatal(err)
				}
			}, "config.uncommitted", "git add .github/proctor.yml", func(p practice) { p.commit(nil) },
		},
		"a gate that passes whatever happens": {
			func(p practice) { p.commit(set(gates("sh tests/run.sh", `"true"`))) }, "config", "", func(p practice) { p.commit(set(nil)) },
		},
		"no gate": {
			func(p practice) { p.commit(set(map[string]string{"gates": "{timeout: 20s}"})) }, "config", "gates.iteration", func(p practice) { p.commit(set(nil)) },
		},
		"the held-out gate is the visible one": {
			func(p practice) { p.commit(set(gates("sh sealed/check.sh", "sh tests/run.sh"))) }, "config", "a command of its own", func(p practice) { p.commit(set(nil)) },
		},
		"a sealed pattern that matches nothing": {
			func(p practice) { p.commit(set(gates("sealed/**", "seeled/**"))) }, "acceptance.sealed", "correct the pattern", func(p practice) { p.commit(set(nil)) },
		},
		"a sealed file that lies elsewhere too": {
			func(p practice) {
				b, err := os.ReadFile(filepath.Join(p.clone, "sealed/check.sh"))
				if err != nil {
					p.t.Fatal(err)
				}
				p.commit(map[string]string{"old/check.sh": string(b)})
			}, "acceptance.readable", "remove the copy", func(p practice) { p.commit(map[string]string{"old/check.sh": ""}) },
		},
		"a rubric that is not there": {
			func(p practice) {
				p.commit(set(map[string]string{"review": "{command: sh tests/run.sh, criteria: [docs/rubric.md]}"}))
			}, "review.criteria", "commit the file", func(p practice) { p.commit(map[string]string{"docs/rubric.md": "Be strict.\n"}) },
		},
		"a gate whose program is missing": {
			func(p practice) { p.commit(set(gates("sh tests/run.sh", "no-such-program-of-ours"))) }, "gates", "", func(p practice) { p.commit(set(nil)) },
		},
		"a gate that says now this, now that": {
			func(p practice) {
				p.commit(merged(set(gates("stability: 1", "stability: 2")), map[string]string{"tests/run.sh": "test -e ignored/x && exit 0\nmkdir -p ignored && touch ignored/x\nexit 1\n"}))
			}, "gates", "", func(p practice) { p.commit(map[string]string{"tests/run.sh": "grep -q right app/answer.txt\n"}) },
		},
		"a held-out gate that has to fail and does not": {
			func(p practice) {
				p.commit(merged(set(gates("attempts: 2", "attempts: 2, must_fail_on_base: always")), map[string]string{"app/answer.txt": allRight}))
			}, "gates", "must_fail_on_base: auto",
			func(p practice) { p.commit(set(gates("attempts: 2", "attempts: 2, must_fail_on_base: auto"))) },
		},
		"no confinement": {
			func(p practice) { p.commit(set(map[string]string{"sandbox": "{mode: off}"})) }, "confinement", "sandbox.mode: auto",
			func(p practice) { p.commit(set(map[string]string{"sandbox": "{mode: auto}"})) },
		},
		"an agent that is not installed": {
			func(p practice) { p.commit(set(map[string]string{"agent": "{name: command, args: [our-own-agent]}"})) }, "agent", "",
			func(p practice) {
				bin := filepath.Join(p.dir, "bin")
				if err := os.MkdirAll(bin, 0o755); err != nil {
					p.t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(bin, "our-own-agent"), []byte("#!/bin/sh\n"), 0o755); err != nil {
					p.t.Fatal(err)
				}
				p.env["PATH"] = bin + ":" + os.Getenv("PATH")
			},
		},
		"no key for the model": {
			func(p practice) {
				p.commit(set(map[string]string{"agent": "{name: anthropic, model: claude-haiku-4-5}"}))
			}, "model.key", "export ANTHROPIC_API_KEY",
			func(p practice) { p.env["ANTHROPIC_API_KEY"] = p.key },
		},
		"a model without a price": {
			func(p practice) {
				p.env["ANTHROPIC_API_KEY"] = p.key
				p.commit(set(map[string]string{"agent": "{name: anthropic, model: my-model}"}))
			}, "budget.price", "budget.price: {my-model: {input: 3, output: 15}}",
			func(p practice) {
				p.commit(set(map[string]string{"agent": "{name: anthropic, model: my-model}", "budget": "{price: {my-model: {input: 3, output: 15}}}"}))
			},
		},
		"no workflow": {
			func(p practice) { p.commit(map[string]string{workflowFile: ""}) }, "workflow", "proctor init",
			func(p practice) {
				if out, code := proctorIn(p.t, p.clone, nil, "init", "--ci", "github"); code != 0 {
					p.t.Fatal(out)
				}
				p.commit(nil)
			},
		},
		"a workflow that keeps the token": {
			func(p practice) {
				p.commit(map[string]string{workflowFile: strings.Replace(repository(setting{})[workflowFile], "persist-credentials: false", "persist-credentials: true", 1)})
			}, "workflow.credentials", "persist-credentials: false", func(p practice) { p.commit(map[string]string{workflowFile: repository(setting{})[workflowFile]}) },
		},
		"a token that was revoked": {
			func(p practice) { p.hub.Revoke(p.env["GITHUB_TOKEN"]) }, "forge.token", "", func(p practice) { p.env["GITHUB_TOKEN"] = p.hub.NewToken(forgetest.Token{Login: asker}) },
		},
		"a token of somebody who only reads": {
			func(p practice) {
				p.hub.AddUser("rita", "read")
				p.env["GITHUB_TOKEN"] = p.hub.NewToken(forgetest.Token{Login: "rita"})
			}, "forge.push", "", func(p practice) { p.hub.AddUser("rita", "write") },
		},
		"Actions may open no pull request": {
			func(p practice) {
				p.hub.Set(forgetest.ActionsMayOpenPullRequests(false))
				p.env["GITHUB_TOKEN"] = p.hub.NewToken(jobToken("write"))
			}, "forge.draft", "settings/actions", func(p practice) { p.hub.Set(forgetest.ActionsMayOpenPullRequests(true)) },
		},
		"a job that only reads issues and pull requests": {
			func(p practice) { p.env["GITHUB_TOKEN"] = p.hub.NewToken(jobToken("read")) }, "forge.comment", "issues", func(p practice) { p.env["GITHUB_TOKEN"] = p.hub.NewToken(jobToken("write")) },
		},
		"an archived repository": {
			func(p practice) { p.hub.Set(forgetest.Archived(true)) }, "forge.repository", "archive", func(p practice) { p.hub.Set(forgetest.Archived(false)) },
		},
	}
	for _, name := range rows(slices.Sorted(maps.Keys(table))) {
		c := table[name]
		t.Run(name, func(t *testing.T) {
			p := openPractice(t, setting{})
			c.broken(p)
			rep, code := p.sees()
			i := slices.IndexFunc(rep.Findings, func(f doctor.Finding) bool { return f.Check == c.check && f.Status == doctor.Failed })
			if i < 0 || code != 1 || rep.Right || rep.Findings[i].Fix == "" || !strings.Contains(rep.Findings[i].Fix, c.fix) {
				t.Fatalf("exit %d, want %s with %q:\n%s", code, c.check, c.fix, rep.Text())
			}
			t.Logf("%s → %s", rep.Findings[i].Text, rep.Findings[i].Fix)
			c.mend(p)
			if rep, code := p.sees(); code != 0 || !rep.Right {
				t.Errorf("mended, and exit %d:\n%s", code, rep.Text())
			}
			if n := len(p.hub.Pulls()); n != 0 {
				t.Errorf("%d pull requests were opened", n)
			}
			if is, _ := p.hub.Issue(p.issue); len(is.Comments) != 0 || len(is.Labels) != 0 {
				t.Errorf("the issue was touched: %+v", is)
			}
		})
	}
}

// jobToken may push; rights are those on issues and pull requests.
func jobToken(rights string) forgetest.Token {
	return forgetest.Token{Login: bot, Job: true, Permissions: map[string]string{"contents": "write", "issues": rights, "pull_requests": rights, "metadata": "read"}}
}

func TestDoctorFindsNothingInARightRepositoryAndSaysWhatItCouldNotSee(t *testing.T) {
	p := openPractice(t, setting{})
	rep, code := p.sees()
	if code != 0 || !rep.Right {
		t.Fatalf("exit %d\n%s", code, rep.Text())
	}
	var proved []string
	for _, f := range rep.Findings {
		if f.Status == doctor.OK {
			proved = append(proved, f.Check)
		}
	}
	for _, want := range []string{"config", "workflow", "agent", "gates", "forge.token", "forge.push", "forge.draft", "forge.issue", "forge.comment", "forge.label"} {
		if !slices.Contains(proved, want) {
			t.Errorf("%s is not proved:\n%s", want, rep.Text())
		}
	}
	delete(p.env, "GITHUB_TOKEN")
	rep, code = p.sees()
	i := slices.IndexFunc(rep.Findings, func(f doctor.Finding) bool { return f.Check == "forge.token" })
	if code != 0 || i < 0 || rep.Findings[i].Status != doctor.Unproved || !strings.Contains(rep.Findings[i].Fix, "GITHUB_TOKEN") {
		t.Errorf("without a token, exit %d:\n%s", code, rep.Text())
	}
}

func TestDoctorIsACheckInActions(t *testing.T) {
	for name, c := range map[string]struct {
		setting setting
		exit    int
		want    string
	}{
		"right": {setting{}, 0, "Nothing is wrong."},
		"wrong": {setting{config: map[string]string{"sandbox": "{mode: off}"}}, 1, "::error title=Proctor doctor%3A confinement::sandbox.mode is off"},
	} {
		t.Run(name, func(t *testing.T) {
			c.setting.byLabel = true
			w := open(t, c.setting)
			w.ask()
			r := w.runner
			a := r.Actions[0]
			a.Env = merged(a.Env, part(partAction), map[string]string{"INPUT_DOCTOR": "true"})
			r.Actions = []forgetest.Action{a}
			res, err := r.Run(t.Context(), w.take())
			if err != nil || res.Jobs[0].ExitCode != c.exit || !strings.Contains(string(res.Run.Log), c.want) {
				t.Errorf("exit %d: %v\n%s", res.Jobs[0].ExitCode, err, res.Run.Log)
			}
			if n := len(w.hub.Pulls()); n != 0 {
				t.Errorf("%d pull requests", n)
			}
		})
	}
}
