package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
	"github.com/proctor-ci/proctor/internal/webhook/ghapp"
)

// creating is `proctor app create` under way.
type creating struct {
	page  string // the address it printed
	rest  chan string
	ended chan int
	stop  context.CancelFunc
}

func startCreate(t *testing.T, hub *forgetest.GitHub, out string, flags ...string) *creating {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	c := &creating{rest: make(chan string, 1), ended: make(chan int, 1), stop: stop}
	env := Env{
		Args:   append([]string{"app", "create", "--webhook-url", "https://hooks.example.com/github", "--server", hub.URL(), "--out", out}, flags...),
		Getenv: func(string) string { return "" }, Stdout: w, Stderr: w, Random: rand.Reader, Now: time.Now, Dir: t.TempDir(),
	}
	go func() {
		c.ended <- CLI(ctx, env)
		_ = w.Close()
	}()
	t.Cleanup(func() { stop(); _ = r.Close() })
	b := bufio.NewReader(r)
	line, err := b.ReadString('\n')
	if c.page = regexp.MustCompile(`http://\S+`).FindString(line); err != nil || c.page == "" {
		t.Fatalf("it printed %q: %v", line, err)
	}
	go func() {
		all, _ := io.ReadAll(b)
		c.rest <- line + string(all)
	}()
	return c
}

// look asks as a browser would, under another Host where one is given.
func look(t *testing.T, address, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// form is what the page would send.
func (c *creating) form(t *testing.T) (action, document string) {
	t.Helper()
	status, page := look(t, c.page, "")
	a := regexp.MustCompile(`action="([^"]+)"`).FindStringSubmatch(page)
	m := regexp.MustCompile(`name="manifest" value="([^"]+)"`).FindStringSubmatch(page)
	if status != http.StatusOK || a == nil || m == nil {
		t.Fatalf("%d %s", status, page)
	}
	return html.UnescapeString(a[1]), html.UnescapeString(m[1])
}

func newHub(t *testing.T) *forgetest.GitHub {
	t.Helper()
	hub, err := forgetest.NewGitHub(forgetest.Options{Dir: filepath.Join(t.TempDir(), "forge"), Enterprise: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	return hub
}

func TestAnAppIsMadeByItsManifestAndItsSecretsAreStoredUnseen(t *testing.T) {
	t.Parallel()
	hub, out := newHub(t), filepath.Join(t.TempDir(), "app")
	c := startCreate(t, hub, out, "--org", "octo", "--name", "proctor-octo", "--tokens")
	here, err := url.Parse(c.page)
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + here.Host
	if here.Hostname() != "127.0.0.1" {
		t.Errorf("it serves on %s", here.Host)
	}
	// What is not the answer that is waited for changes nothing.
	for name, a := range map[string]struct {
		address, host string
		want          int
	}{
		"another name":        {c.page, "evil.example:" + here.Port(), 403},
		"no first word":       {base + "/", "", 404},
		"another first word":  {base + "/0123", "", 404},
		"no state":            {base + "/done?code=abc", "", 400},
		"another's state":     {base + "/done?code=abc&state=0123", "", 400},
		"another name's code": {base + "/done?code=abc&state=0123", "evil.example", 403},
	} {
		if got, body := look(t, a.address, a.host); got != a.want {
			t.Errorf("%s: %d %s", name, got, body)
		}
	}
	action, document := c.form(t)
	if !strings.HasPrefix(action, hub.URL()+"/organizations/octo/settings/apps/new?state=") {
		t.Errorf("the form goes to %s", action)
	}
	state := action[strings.LastIndexByte(action, '=')+1:]
	if got, _ := look(t, base+"/done?code=a%2Fb&state="+state, ""); got != 400 {
		t.Errorf("a code that is a path: %d", got)
	}
	resp, err := http.PostForm(action, url.Values{"manifest": {document}})
	if err != nil {
		t.Fatal(err)
	}
	last, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if code := <-c.ended; resp.StatusCode != http.StatusOK || code != 0 {
		t.Fatalf("%d %s, exit %d: %s", resp.StatusCode, last, code, <-c.rest)
	}
	printed := <-c.rest + string(last)
	stored := map[string]string{}
	for _, name := range []string{"app-id", "private-key.pem", "webhook-secret"} {
		path := filepath.Join(out, name)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v %v", name, info, err)
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		stored[name] = string(b)
		if !strings.Contains(printed, path) && name != "app-id" {
			t.Errorf("the command does not say where the %s lies: %s", name, printed)
		}
	}
	if strings.Contains(printed, stored["webhook-secret"]) || strings.Contains(printed, "PRIVATE KEY") {
		t.Errorf("a secret was shown: %s", printed)
	}
	// The key is the App's, and the App may do what runs need and no more.
	key, err := ghapp.ParseKey([]byte(stored["private-key.pem"]))
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if _, err := fmt.Sscan(stored["app-id"], &id); err != nil {
		t.Fatal(err)
	}
	app, err := ghapp.New(ghapp.Config{BaseURL: hub.APIURL(), AppID: id, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := app.Attempts(t.Context(), time.Now()); err != nil {
		t.Errorf("the App cannot sign in: %v", err)
	}
	want := `"default_permissions":{"actions":"write","contents":"write","issues":"write","metadata":"read","pull_requests":"write"}`
	if !strings.Contains(document, want) || !strings.Contains(document, `"public":false`) || !strings.Contains(document, `"name":"proctor-octo"`) {
		t.Errorf("manifest %s", document)
	}
}

func TestAnAppThatDoesNotComeBackLeavesNothing(t *testing.T) {
	t.Parallel()
	hub, out := newHub(t), filepath.Join(t.TempDir(), "app")
	c := startCreate(t, hub, out)
	action, document := c.form(t)
	if strings.Contains(document, `"contents"`) || !strings.Contains(action, "/settings/apps/new?") || strings.Contains(action, "organizations") {
		t.Errorf("%s %s", action, document)
	}
	state := action[strings.LastIndexByte(action, '=')+1:]
	here, _ := url.Parse(c.page)
	if got, _ := look(t, "http://"+here.Host+"/done?code=unknown&state="+state, ""); got != http.StatusBadGateway {
		t.Errorf("a code that is none: %d", got)
	}
	if code, text := <-c.ended, <-c.rest; code != exitUsage || !strings.Contains(text, "HTTP 404") || !strings.Contains(text, "Next: ") {
		t.Errorf("exit %d: %s", code, text)
	}
	c = startCreate(t, hub, out)
	c.stop()
	if code, text := <-c.ended, <-c.rest; code != exitUsage || !strings.Contains(text, "no App came back") {
		t.Errorf("stopped: exit %d: %s", code, text)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", out, err)
	}
}

func TestAnAppIsNotBegunWhereItsKeyCannotBeKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"repo/.git", "there"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hook := []string{"--webhook-url", "https://hooks.example.com/github"}
	for want, args := range map[string][]string{
		"--webhook-url is missing": nil,
		"lies in the repository":   append(hook, "--out", filepath.Join(dir, "repo", "app")),
		"exists":                   append(hook, "--out", filepath.Join(dir, "there")),
		"--out":                    append(hook, "--out", filepath.Join(dir, "no", "such", "place")),
		"--org":                    append(hook, "--org", "../x", "--out", filepath.Join(dir, "one")),
		"--server":                 append(hook, "--server", "http://ghe.example.com", "--out", filepath.Join(dir, "two")),
		"https address":            {"--webhook-url", "http://hooks.example.com/github", "--out", filepath.Join(dir, "three")},
	} {
		var out bytes.Buffer
		code := CLI(t.Context(), Env{Args: append([]string{"app", "create"}, args...), Getenv: func(string) string { return "" }, Stdout: &out, Stderr: &out, Random: rand.Reader, Now: time.Now, Dir: dir})
		if code != exitUsage || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "Next: ") {
			t.Errorf("%s: exit %d, %s", want, code, out.String())
		}
	}
}
