// Package manifest owns the creation of a GitHub App from a manifest: a page on loopback that sends a person to the forge, and what
// the forge answers. It must never print a secret, serve anybody but this machine, or be served twice.
package manifest

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/proctor-ci/proctor/internal/pattern"
	"github.com/proctor-ci/proctor/internal/secureurl"
)

// Wanted is the App to make.
type Wanted struct {
	Server string // https://github.com, or an Enterprise Server's address
	API    string // of the same
	Org    string // "" for the person's own account
	Name   string // "" lets the forge ask for it; names are unique on the whole forge
	Hook   string // where deliveries go
	Tokens bool   // runs get their tokens from it, so it may write contents and pull requests
}

// App is what the forge made. Key and HookSecret are given once.
type App struct {
	ID         int64
	Page       string // its settings, and below it its installation
	Key        string
	HookSecret string
}

// Validate names what cannot work.
func (w Wanted) Validate() error {
	for _, a := range []struct{ what, at string }{{"--webhook-url", w.Hook}, {"--server", w.Server}, {"--api", w.API}} {
		u, err := url.Parse(a.at)
		if err != nil || !secureurl.Safe(u) {
			return fmt.Errorf("%s is %q, and has to be an https address. Next: give one such as https://hooks.example.com/github", a.what, a.at)
		}
	}
	if w.Org != "" && !orgName.MatchString(w.Org) {
		return fmt.Errorf("--org is %q. Next: give the organisation's name as it stands in its address", w.Org)
	}
	return nil
}

var orgName = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}$`)

// document is the manifest. It asks for no more than the webhook and its runs need.
// https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
func (w Wanted) document(back string) ([]byte, error) {
	rights := map[string]string{"metadata": "read", "issues": "write", "actions": "write"}
	if w.Tokens {
		rights["contents"], rights["pull_requests"] = "write", "write"
	} else {
		rights["pull_requests"] = "read" // its events
	}
	m := map[string]any{
		"url": "https://github.com/proctor-ci/proctor", "redirect_url": back, "public": false,
		"hook_attributes":     map[string]any{"url": w.Hook, "active": true},
		"default_permissions": rights,
		"default_events":      []string{"issues", "issue_comment", "pull_request", "pull_request_review", "workflow_run"},
	}
	if w.Name != "" {
		m["name"] = w.Name
	}
	return json.Marshal(m)
}

// target is where the form goes.
func (w Wanted) target(state string) string {
	path := "/settings/apps/new"
	if w.Org != "" {
		path = "/organizations/" + w.Org + "/settings/apps/new"
	}
	return strings.TrimRight(w.Server, "/") + path + "?state=" + url.QueryEscape(state)
}

// Desk is the page on loopback, from its start until one App came back.
type Desk struct {
	want  Wanted
	host  string // 127.0.0.1:port: no other name may be used for it
	state string
	begin string // secret part of the first page's address
	http  *http.Client
	keep  func(App) error

	mu   sync.Mutex
	used bool
	done chan result
}

type result struct {
	app App
	err error
}

// callTime bounds the one call to the forge.
const callTime = 30 * time.Second

// New makes a desk for the listener's address. random gives unguessable words; keep stores what came back before the person is told
// that it worked.
func New(w Wanted, l net.Addr, random func() string, keep func(App) error) *Desk {
	return &Desk{
		want: w, host: l.String(), state: random(), begin: random(), keep: keep, done: make(chan result, 1),
		http: &http.Client{Timeout: callTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Address is the page to open.
func (d *Desk) Address() string { return "http://" + d.host + "/" + d.begin }

// Wait gives what came back, or why nothing did.
func (d *Desk) Wait(ctx context.Context) (App, error) {
	select {
	case r := <-d.done:
		return r.app, r.err
	case <-ctx.Done():
		return App{}, errors.New("no App came back in time. Next: run the command again, open the page and confirm there")
	}
}

// ServeHTTP serves two pages, to this machine under its own name.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	switch {
	case r.Host != d.host:
		// A name that somebody else's server resolves to this machine.
		say(w, http.StatusForbidden, "This page is served under its own address only.")
	case r.Method != http.MethodGet:
		say(w, http.StatusMethodNotAllowed, "This page is only looked at.")
	case same(strings.TrimPrefix(r.URL.Path, "/"), d.begin):
		d.form(w)
	case r.URL.Path == "/done":
		d.back(w, r)
	default:
		say(w, http.StatusNotFound, "Open the address that the command printed.")
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

var formPage = template.Must(template.New("form").Parse(`<!doctype html><meta charset="utf-8"><title>Proctor's GitHub App</title>
<p>This makes a GitHub App on {{.Host}} that hears {{.Hook}}'s events. You confirm it there.</p>
<form method="post" action="{{.Target}}"><input type="hidden" name="manifest" value="{{.Manifest}}"><button>Go on to {{.Host}}</button></form>
`))

func (d *Desk) form(w http.ResponseWriter) {
	doc, err := d.want.document("http://" + d.host + "/done")
	if err != nil {
		say(w, http.StatusInternalServerError, "The manifest cannot be written.")
		return
	}
	u, _ := url.Parse(d.want.Server) // Validate read it
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A browser that is gone sees nothing.
	_ = formPage.Execute(w, map[string]string{"Host": u.Host, "Hook": d.want.Hook, "Target": d.want.target(d.state), "Manifest": string(doc)})
}

// code is what the forge gives for a manifest; it goes into a path.
var code = pattern.Of(`^[A-Za-z0-9_-]{1,200}$`)

// back takes the forge's answer, once. A request without the state of this desk is none, and uses nothing up.
func (d *Desk) back(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !same(q.Get("state"), d.state) || !code.MatchString(q.Get("code")) {
		say(w, http.StatusBadRequest, "This is not the answer that is waited for. Open the address that the command printed and begin again.")
		return
	}
	d.mu.Lock()
	first := !d.used
	d.used = true
	d.mu.Unlock()
	if !first {
		say(w, http.StatusConflict, "The App has come back already.")
		return
	}
	// The code is good once: a browser that goes away now must not cost the key.
	app, err := d.convert(context.WithoutCancel(r.Context()), q.Get("code"))
	if err == nil {
		err = d.keep(app)
	}
	if err != nil {
		say(w, http.StatusBadGateway, "It did not work. The command says why.")
	} else {
		say(w, http.StatusOK, "The App is there, and its key is stored. Go back to the command; this page can be closed.")
	}
	d.done <- result{app, err}
}

func (d *Desk) convert(ctx context.Context, code string) (App, error) {
	api, err := url.Parse(strings.TrimRight(d.want.API, "/") + "/")
	if err != nil {
		return App{}, err
	}
	client := github.NewClient(d.http)
	client.BaseURL = api
	got, resp, err := client.Apps.CompleteAppManifest(ctx, code)
	switch {
	case resp == nil && err != nil:
		return App{}, fmt.Errorf("%s cannot be reached: %w. Next: check the connection, delete the App that the forge has made by now, and run the command again", api.Host, err)
	case err != nil || resp.StatusCode != http.StatusCreated:
		return App{}, fmt.Errorf("%s gave no App for the manifest (HTTP %d). Next: run the command again; a code is good once and for an hour", api.Host, resp.StatusCode)
	case got.GetID() <= 0 || got.GetPEM() == "" || got.GetWebhookSecret() == "":
		return App{}, fmt.Errorf("%s gave an App without a key or a webhook secret. Next: make both on the App's page, %s", api.Host, got.GetHTMLURL())
	}
	return App{ID: got.GetID(), Page: got.GetHTMLURL(), Key: got.GetPEM(), HookSecret: got.GetWebhookSecret()}, nil
}

// say writes one of our own sentences.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // a browser that is gone sees nothing
}
