package forgetest_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/bradleyfalzon/ghinstallation/v2"

	"github.com/proctor-ci/proctor/internal/forge/forgetest"
)

// mailbox keeps what a hook received.
type mailbox struct {
	mu   sync.Mutex
	got  []*http.Request
	body [][]byte
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got, m.body = append(m.got, r), append(m.body, data)
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, "queued")
}

func TestALabelIsDeliveredSignedAndRedeliveredWithTheSameID(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	hook := httptest.NewServer(box)
	defer hook.Close()
	g := newGitHub(t, forgetest.Options{Installation: 77})
	g.SetHook(hook.URL, "It's a secret")
	n := g.OpenIssue("Totals", "are <wrong> & bad 🙂", "alice")
	d, err := g.LabelIssue(n, "proctor", "bob")
	if err != nil || d.Status != 202 || string(d.Response) != "queued" {
		t.Fatalf("delivery = %d %s, %v", d.Status, d.Response, err)
	}
	again, err := g.Redeliver(d.ID)
	if err != nil || again.ID != d.ID || again.Redeliveries != 1 {
		t.Fatalf("redelivery = %+v, %v", again.ID, err)
	}
	for i, r := range box.got {
		if r.Header.Get("X-GitHub-Delivery") != d.ID || r.Header.Get("X-GitHub-Event") != "issues" ||
			r.Header.Get("X-Hub-Signature-256") != forgetest.Sign("It's a secret", box.body[i]) {
			t.Errorf("request %d: headers %v", i, r.Header)
		}
	}
	if len(box.got) != 2 || string(box.body[0]) != string(box.body[1]) {
		t.Errorf("%d requests, bodies equal: %v", len(box.got), string(box.body[0]) == string(box.body[1]))
	}
	var p struct {
		Action string
		Issue  struct {
			Body   string
			Labels []struct{ Name string }
		}
		Installation struct{ ID int64 }
	}
	if err := json.Unmarshal(box.body[0], &p); err != nil || p.Action != "labeled" || p.Issue.Body != "are <wrong> & bad 🙂" || len(p.Issue.Labels) != 1 || p.Installation.ID != 77 {
		t.Errorf("payload = %+v, %v", p, err)
	}
	if _, err := g.LabelIssue(n, "proctor", "bob"); err == nil {
		t.Error("a label that is there was added again without a word")
	}
	hook.Close()
	if d, err := g.LabelIssue(n, "other", "bob"); err == nil || d.Err == nil {
		t.Errorf("a hook that is down: %+v, %v", d.Status, err)
	}
}

func TestLabelsSetByAJobsTokenTellTheHookButStartNoWorkflow(t *testing.T) {
	t.Parallel()
	b := newBench(t, labelWorkflow, "true")
	box := &mailbox{}
	hook := httptest.NewServer(box)
	defer hook.Close()
	b.SetHook(hook.URL, "s")
	n := b.OpenIssue("A", "b", "alice")
	add := func(tok forgetest.Token, label string) {
		if status, answer := call(t, b.GitHub, b.NewToken(tok), "POST", "/repos/octo/shop/issues/1/labels", `{"labels":["`+label+`"]}`); status != 200 {
			t.Fatalf("label = %d %s", status, answer)
		}
	}
	add(forgetest.Token{Job: true}, "one")
	b.Settle()
	if runs := b.Runs(); len(runs) != 0 || len(box.got) != 1 {
		t.Errorf("%d runs, %d deliveries, want 0 and 1", len(runs), len(box.got))
	}
	add(forgetest.Token{Login: "alice"}, "two") // control
	b.Settle()
	if runs := b.Runs(); len(runs) != 1 || runs[0].Actor != "alice" {
		t.Errorf("%d runs by a person's label, want 1", len(runs))
	}
	if is, _ := b.Issue(n); !slices.Equal(is.Labels, []string{"one", "two"}) {
		t.Errorf("labels = %v", is.Labels)
	}
}

func TestAnAppGetsTokensForItsInstallationOnly(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := newGitHub(t, forgetest.Options{})
	g.InstallApp(12, 77, "proctor-app", &key.PublicKey, map[string]string{"issues": "write", "metadata": "read"})
	g.OpenIssue("A", "b", "alice")
	ask := func(key *rsa.PrivateKey, app, installation int64) (int, string) {
		block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
		tr, err := ghinstallation.New(http.DefaultTransport, app, installation, block)
		if err != nil {
			t.Fatal(err)
		}
		tr.BaseURL = g.APIURL()
		token, err := tr.Token(t.Context())
		if err != nil {
			return 0, err.Error()
		}
		status, body := call(t, g, token, "POST", "/repos/octo/shop/issues/1/comments", `{"body":"from the app"}`)
		if status == 201 {
			status, body = call(t, g, token, "POST", "/repos/octo/shop/actions/workflows/ci.yml/dispatches", `{"ref":"main"}`)
		}
		return status, body
	}
	if status, body := ask(key, 12, 77); status != 403 || !strings.Contains(body, "not accessible by integration") {
		t.Errorf("the App's token dispatched without actions: write: %d %s", status, body)
	}
	if is, _ := g.Issue(1); len(is.Comments) != 1 || is.Comments[0].Author != "proctor-app[bot]" {
		t.Errorf("comments = %+v", is.Comments)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key               *rsa.PrivateKey
		app, installation int64
		want              string
	}{
		"another key":          {other, 12, 77, "401"},
		"another App":          {key, 13, 77, "404"},
		"another installation": {key, 12, 78, "404"},
	} {
		if status, body := ask(c.key, c.app, c.installation); status != 0 || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %s", name, status, body, c.want)
		}
	}
	g.Set(forgetest.SuspendApp(true))
	if _, body := ask(key, 12, 77); !strings.Contains(body, "403") {
		t.Errorf("a suspended installation: %s", body)
	}
}

func TestGitLabDeliversTheChangeWithItsTokenAndSignature(t *testing.T) {
	t.Parallel()
	box := &mailbox{}
	hook := httptest.NewServer(box)
	defer hook.Close()
	g, err := forgetest.NewGitLab(forgetest.GitLabOptions{Dir: t.TempDir(), Files: fstest.MapFS{"a": {Data: []byte("a")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.SetHook(hook.URL, "shared", []byte("signing-key"))
	n := g.OpenIssue("A", "b", "alice")
	d, err := g.LabelIssue(n, "proctor", "bob")
	if err != nil || d.Status != 202 {
		t.Fatalf("delivery = %d, %v", d.Status, err)
	}
	h := box.got[0].Header
	want := forgetest.SignStandard([]byte("signing-key"), h.Get("webhook-id"), h.Get("webhook-timestamp"), box.body[0])
	if h.Get("X-Gitlab-Event") != "Issue Hook" || h.Get("X-Gitlab-Token") != "shared" || h.Get("X-Gitlab-Event-UUID") != d.ID || h.Get("webhook-signature") != want {
		t.Errorf("headers = %v", h)
	}
	var p struct {
		ObjectAttributes struct{ Action string } `json:"object_attributes"`
		Changes          struct {
			Labels struct{ Previous, Current []struct{ Title string } }
		}
	}
	if err := json.Unmarshal(box.body[0], &p); err != nil || p.ObjectAttributes.Action != "update" || len(p.Changes.Labels.Previous) != 0 || p.Changes.Labels.Current[0].Title != "proctor" {
		t.Errorf("payload = %s, %v", box.body[0], err)
	}
	if again, err := g.Redeliver(d.ID); err != nil || again.Redeliveries != 1 || box.got[1].Header.Get("Idempotency-Key") != d.ID {
		t.Errorf("redelivery: %v", err)
	}
}

func TestFaultsThatWereNotMetAreTold(t *testing.T) {
	t.Parallel()
	g := newGitHub(t, forgetest.Options{})
	if err := g.Fail("GET /[", 1, forgetest.LostCall()); err == nil {
		t.Error("a broken pattern was taken")
	}
	if err := g.Fail("GET /repos/*/*", 2, forgetest.BadGateway()); err != nil {
		t.Fatal(err)
	}
	token := g.NewToken(forgetest.Token{Login: "octo"})
	if status, _ := call(t, g, token, "GET", "/repos/octo/shop", ""); status != 502 {
		t.Errorf("status = %d", status)
	}
	if left := g.Unmet(); len(left) != 1 || !strings.Contains(left[0], "1 left") {
		t.Errorf("unmet = %v", left)
	}
	call(t, g, token, "GET", "/repos/octo/shop", "")
	if status, _ := call(t, g, token, "GET", "/repos/octo/shop", ""); status != 200 || len(g.Unmet()) != 0 {
		t.Errorf("status = %d, unmet %v", status, g.Unmet())
	}
	if reqs := g.Requests(); len(reqs) != 3 || reqs[0].Account != "octo" || reqs[2].Status != 200 {
		t.Errorf("requests = %+v", reqs)
	}
}
