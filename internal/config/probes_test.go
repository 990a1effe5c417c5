package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProbesLoadWithWhatTheyMeanWhenAKeyIsLeftOut(t *testing.T) {
	t.Parallel()
	c, err := Load(file, []byte(`
gates:
  iteration: make test
  probes:
    - name: serves
      as: acceptance
      timeout: 2m
      http: {start: npm start, url: "http://127.0.0.1:3000/health", body: ok}
    - tcp: {address: "localhost:5432", within: 5s}
    - {boots: {start: [./server, --once]}}
    - env-file: {path: .env.example, keys: [PORT, HOST]}
    - file: {path: docs/api.md, contains: "# Limits"}
    - {name: no-secrets, file: {path: .env, absent: true}}
    - docker-build: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Probe{
		{Name: "serves", As: "acceptance", Kind: "http", Timeout: 2 * time.Minute, Start: Shell("npm start"), URL: "http://127.0.0.1:3000/health", Status: 200, Body: "ok", Within: 30 * time.Second},
		{Name: "tcp", As: "iteration", Kind: "tcp", Address: "localhost:5432", Within: 5 * time.Second},
		{Name: "boots", As: "iteration", Kind: "boots", Start: Command{Argv: []string{"./server", "--once"}}, For: 5 * time.Second},
		{Name: "env-file", As: "iteration", Kind: "env-file", Path: ".env.example", Keys: []string{"PORT", "HOST"}},
		{Name: "file", As: "iteration", Kind: "file", Path: "docs/api.md", Contains: "# Limits"},
		{Name: "no-secrets", As: "iteration", Kind: "file", Path: ".env", Absent: true},
		{Name: "docker-build", As: "iteration", Kind: "docker-build", File: "Dockerfile", Context: "."},
	}
	if diff := cmp.Diff(want, c.Gates.Probes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Gates.HeldOut() != 1 {
		t.Errorf("held out: %d", c.Gates.HeldOut())
	}
	again, err := Load(file, []byte("gates:\n  probes: "+render(&c.Gates.Probes)+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again.Gates.Probes); diff != "" {
		t.Errorf("written out and read again (-want +got):\n%s", diff)
	}
}

func TestEveryKindOfProbeLoadsByItsExample(t *testing.T) {
	t.Parallel()
	for _, k := range probeKinds() {
		if _, err := Load(file, []byte("gates:\n  probes:\n    - "+k.name+": "+k.example+"\n")); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		for _, f := range k.fields {
			if f.doc == "" || f.example == "" {
				t.Errorf("%s.%s has no description or example", k.name, f.name)
			}
		}
	}
}

// INV-55 for what stands inside a probe.
func TestFaultsInAProbeAreToldWithTheirPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, probe, want string }{
		{"no mapping", `serves`, "2:12: gates.probes: want a probe, got the text \"serves\""},
		{"no kind", `{name: x}`, "a probe without a kind; add one of http, tcp, boots, env-file, file, docker-build"},
		{"two kinds", `{tcp: {address: "localhost:1"}, file: {path: a}}`, "a probe is of one kind, and this one is tcp already"},
		{"unknown kind", `{htpp: {url: "http://127.0.0.1/"}}`, `unknown key "htpp"; did you mean "http"?`},
		{"unknown key", `{http: {ur: "http://127.0.0.1/"}}`, `unknown key "ur"`},
		{"missing key", `{boots: {for: 3s}}`, "boots needs start"},
		{"kind without mapping", `{file: README.md}`, "want a mapping, got the text"},
		{"wrong class", `{as: setup, file: {path: a}}`, `"setup" is not allowed here`},
		{"a gate's name", `{name: acceptance, file: {path: a}}`, "is not the name of a probe"},
		{"another host", `{http: {url: "http://example.com/"}}`, "is not on loopback"},
		{"the metadata address", `{http: {url: "http://169.254.169.254/latest"}}`, "is not on loopback"},
		{"a host that looks local", `{http: {url: "http://127.0.0.1.example.com/"}}`, "is not on loopback"},
		{"https", `{http: {url: "https://127.0.0.1/"}}`, "is not a plain http:// address"},
		{"no port", `{tcp: {address: localhost}}`, "is not host:port"},
		{"a foreign port", `{tcp: {address: "10.0.0.1:80"}}`, "is not on loopback"},
		{"a path that leaves", `{file: {path: ../x}}`, "does not lie in the repository"},
		{"absent and contains", `{file: {path: a, absent: true, contains: b}}`, "contains nothing"},
		{"a status out of range", `{http: {url: "http://127.0.0.1/", status: 42}}`, "42 is too small"},
		{"a variable with a value", `{env-file: {path: .env, keys: ["A=1"]}}`, "is not the name of a variable"},
		{"twice", `{name: a, name: b, file: {path: a}}`, `"name" stands here twice`},
		{"same name", `{file: {path: a}}, {file: {path: b}}`, `two probes are called "file"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(file, []byte("gates:\n  probes: ["+c.probe+"]\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestHeldOutFilesHaveOnePlaceAndAGateThatUsesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, acceptance, want string }{
		{"source", `{run: make held, source: {repo: acme/exams, ref: v1, path: till}}`, ""},
		{"dir by input", `{run: make held, dir: input}`, ""},
		{"dir by path", `{run: make held, dir: /exams}`, ""},
		{"parts alone", `{parts: [make a, make b], feedback: count, sealed: [held/**]}`, ""},
		{"both", `{run: make held, dir: input, source: {ref: x}}`, "source brings held-out files already"},
		{"no gate", `{source: {repo: acme/exams}}`, "means nothing without gates.acceptance.run"},
		{"relative dir", `{run: make held, dir: exams}`, "is neither"},
		{"nothing to count", `{run: make held, feedback: count}`, "nothing to count"},
		{"a part that is seen", `{parts: [make test, make b]}`, "nothing would be held out"},
		{"an option for a ref", `{run: make held, source: {ref: "--upload-pack=x"}}`, "names no ref"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(file, []byte("gates:\n  iteration: make test\n  acceptance: "+c.acceptance+"\n"))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
