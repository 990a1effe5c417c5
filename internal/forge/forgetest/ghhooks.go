package forgetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

type hook struct{ url, secret string }

// Delivery is one webhook request and what came back.
type Delivery struct {
	ID, Event, Action string
	Header            http.Header
	Body              []byte
	Status            int // 0: no answer
	Response          []byte
	Err               error
	Redeliveries      int

	done chan struct{} // closed after the first answer
}

// SetHook sends issue events to url from now on, signed with secret.
func (g *GitHub) SetHook(url, secret string) {
	g.state.Lock()
	defer g.state.Unlock()
	g.hook = &hook{url, secret}
}

// Sign is the X-Hub-Signature-256 of a body.
func Sign(secret string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// emitLabeled tells the hook and the workflows. A workflow's own token starts no workflow.
func (g *GitHub) emitLabeled(is *issue, l *label, by *account, fromJob bool) {
	if is.pull != nil {
		return // pull_request events: nothing here listens to them
	}
	p := g.issuePayload("labeled", is, by)
	p["label"] = g.labelJSON(l)
	g.deliver("issues", "labeled", p)
	if !fromJob {
		g.startWorkflows("issues", "labeled", by.login, p)
	}
}

// emitComment tells the hook and the workflows of a comment; pull requests' conversations too.
func (g *GitHub) emitComment(action string, is *issue, m *comment, fromJob bool) {
	p := g.issuePayload(action, is, m.author)
	o := g.commentJSON(is, m)
	o["user"] = g.hookUserJSON(m.author)
	p["comment"] = o
	g.deliver("issue_comment", action, p)
	if !fromJob {
		g.startWorkflows("issue_comment", action, m.author.login, p)
	}
}

// issuePayload is the common part of issues events.
func (g *GitHub) issuePayload(action string, is *issue, by *account) obj {
	return g.withInstallation(obj{"action": action, "issue": g.hookIssueJSON(is), "repository": g.hookRepoJSON(), "sender": g.hookUserJSON(by)})
}

func (g *GitHub) withInstallation(p obj) obj {
	if id := g.opt.Installation; id != 0 {
		p["installation"] = obj{"id": id, "node_id": nodeID("MDIzOkludGVncmF0aW9u", id)}
	}
	return p
}

// Payloads differ from API answers in small ways, which the schemas of e2e/api hold us to.
func (g *GitHub) hookIssueJSON(is *issue) obj {
	o := g.issueJSON(is)
	o["user"] = g.hookUserJSON(is.author)
	return o
}

func (g *GitHub) hookRepoJSON() obj {
	r := g.repoJSON()
	r["owner"], r["custom_properties"] = g.hookUserJSON(g.user(g.opt.Owner)), obj{}
	return r
}

func (g *GitHub) hookUserJSON(a *account) obj {
	u := g.userJSON(a)
	delete(u, "user_view_type")
	return u
}

func (g *GitHub) dispatchPayload(ref, file, actor string, inputs map[string]string) obj {
	return g.withInstallation(obj{"inputs": inputs, "ref": ref, "workflow": file, "repository": g.hookRepoJSON(), "sender": g.hookUserJSON(g.user(actor))})
}

func marshalPayload(p obj) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// deliver sends in the background: the forge does not wait for its hooks. The state lock is held.
func (g *GitHub) deliver(event, action string, payload obj) *Delivery {
	if g.hook == nil {
		return nil
	}
	body, err := marshalPayload(payload)
	if err != nil {
		return nil
	}
	d := &Delivery{ID: uuid(), Event: event, Action: action, Body: body, Header: http.Header{}, done: make(chan struct{})}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/test", "X-GitHub-Event": event,
		"X-GitHub-Delivery": d.ID, "X-GitHub-Hook-ID": "77", "X-GitHub-Hook-Installation-Target-ID": "500",
		"X-GitHub-Hook-Installation-Target-Type": "repository", "X-Hub-Signature-256": Sign(g.hook.secret, body),
	} {
		d.Header.Set(k, v)
	}
	g.deliveries = append(g.deliveries, d)
	url := g.hook.url
	g.wg.Go(func() {
		defer close(d.done)
		g.send(url, d)
	})
	return d
}

// hookTimeout is GitHub's.
const hookTimeout = 10 * time.Second

func (g *GitHub) send(url string, d *Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), hookTimeout)
	defer cancel()
	status, response, err := post(ctx, url, d.Header, d.Body)
	g.state.Lock()
	defer g.state.Unlock()
	d.Status, d.Response, d.Err = status, response, err
	g.noteAttempt(d, status)
}

func post(ctx context.Context, url string, header http.Header, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header = header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("deliver to %s: %w", url, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, data, err
}

// Deliveries so far, as copies; call Settle first to see their answers.
func (g *GitHub) Deliveries() []Delivery {
	g.state.Lock()
	defer g.state.Unlock()
	return copies(g.deliveries)
}

// Redeliver sends a delivery again, with the same id and body, and gives its answer.
func (g *GitHub) Redeliver(id string) (Delivery, error) {
	g.state.Lock()
	var d *Delivery
	for _, x := range g.deliveries {
		if x.ID == id {
			d = x
		}
	}
	if d == nil {
		g.state.Unlock()
		return Delivery{}, fmt.Errorf("redeliver %s: there is no such delivery", id)
	}
	d.Redeliveries++
	url := g.hook.url
	g.state.Unlock()
	g.send(url, d)
	g.state.Lock()
	defer g.state.Unlock()
	return *d, d.Err
}
