package forgetest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

type glHook struct {
	url, token string
	signing    []byte
}

// SetHook sends issue events to url from now on with token as X-Gitlab-Token. signing, if not nil, adds
// the Standard Webhooks signature by that key.
func (g *GitLab) SetHook(url, token string, signing []byte) {
	g.state.Lock()
	defer g.state.Unlock()
	g.hook = &glHook{url, token, signing}
}

// SignStandard is the webhook-signature of Standard Webhooks: v1, base64 of HMAC-SHA-256 over id.timestamp.body.
func SignStandard(key []byte, id, timestamp string, body []byte) string {
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s.%s.", id, timestamp)
	m.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// emitLabels is the Issue Hook of a label change: action "update", with the labels before and after.
func (g *GitLab) emitLabels(is *issue, before []string, by *account) {
	if g.hook == nil {
		return
	}
	g.deliver("Issue Hook", "update", obj{
		"object_kind": "issue", "event_type": eventType(g.secret[is.number]), "user": g.hookUser(by), "project": g.hookProject(),
		"object_attributes": obj{
			"id": is.id, "iid": is.number, "title": is.title, "description": is.body, "state": glState(is.state), "action": "update",
			"author_id": is.author.id, "project_id": 4200, "confidential": g.secret[is.number], "discussion_locked": is.locked, "type": "Issue",
			"created_at": stampOf(is.created), "updated_at": stampOf(is.updated), "url": g.issueURL(is), "labels": g.hookLabels(is.labels), "severity": "unknown",
		},
		"labels":     g.hookLabels(is.labels),
		"changes":    obj{"labels": obj{"previous": g.hookLabels(before), "current": g.hookLabels(is.labels)}},
		"repository": obj{"name": g.opt.Project, "url": g.webURL() + ".git", "description": "", "homepage": g.webURL()},
	})
}

// emitNote is the Note Hook of a new note.
func (g *GitLab) emitNote(is *issue, m *comment) {
	if g.hook == nil {
		return
	}
	p := obj{
		"object_kind": "note", "event_type": "note", "user": g.hookUser(m.author), "project_id": 4200, "project": g.hookProject(),
		"object_attributes": obj{
			"id": m.id, "note": m.body, "noteable_type": noteable(is), "noteable_id": is.id, "author_id": m.author.id, "project_id": 4200,
			"created_at": stampOf(m.created), "updated_at": stampOf(m.updated), "system": false, "internal": false, "action": "create", "type": nil,
		},
		"repository": obj{"name": g.opt.Project, "url": g.webURL() + ".git", "description": "", "homepage": g.webURL()},
	}
	about := obj{"id": is.id, "iid": is.number, "title": is.title, "description": is.body, "state": glState(is.state), "author_id": is.author.id, "url": g.issueURL(is)}
	if is.pull == nil {
		about["confidential"], about["discussion_locked"], about["labels"] = g.secret[is.number], is.locked, g.hookLabels(is.labels)
		p["issue"] = about
	} else {
		source := 4200
		if is.pull.fork {
			source = 4300
		}
		about["source_branch"], about["target_branch"], about["work_in_progress"] = is.pull.head, is.pull.base, isDraft(is.title)
		about["source_project_id"], about["target_project_id"], about["last_commit"] = source, 4200, obj{"id": g.mergeHead(is)}
		p["merge_request"] = about
	}
	g.deliver("Note Hook", "create", p)
}

func eventType(confidential bool) string {
	if confidential {
		return "confidential_issue"
	}
	return "issue"
}

func (g *GitLab) hookUser(a *account) obj {
	return obj{"id": a.id, "name": a.login, "username": a.login, "avatar_url": nil, "email": "[REDACTED]"}
}

func (g *GitLab) hookProject() obj {
	level := 0
	if g.opt.Public {
		level = 20
	}
	return obj{"id": 4200, "name": g.opt.Project, "path_with_namespace": g.opt.Project, "default_branch": g.opt.DefaultBranch, "visibility_level": level,
		"web_url": g.webURL(), "git_http_url": g.webURL() + ".git", "homepage": g.webURL(), "http_url": g.webURL() + ".git"}
}

func (g *GitLab) hookLabels(names []string) []obj {
	out := []obj{}
	for _, n := range names {
		l := g.label(n)
		out = append(out, obj{"id": l.id, "title": l.name, "color": l.color, "project_id": 4200, "type": "ProjectLabel", "group_id": nil, "template": false, "description": nil})
	}
	return out
}

func (g *GitLab) deliver(event, action string, payload obj) {
	body, err := marshalPayload(payload)
	if err != nil {
		return
	}
	d := &Delivery{ID: uuid(), Event: event, Action: action, Body: body, Header: http.Header{}, done: make(chan struct{})}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitLab/test", "X-Gitlab-Event": event, "X-Gitlab-Event-UUID": d.ID,
		"X-Gitlab-Webhook-UUID": uuid(), "Idempotency-Key": d.ID, "X-Gitlab-Instance": g.url, "X-Gitlab-Token": g.hook.token,
	} {
		d.Header.Set(k, v)
	}
	if g.hook.signing != nil {
		at := strconv.FormatInt(g.now().Unix(), 10)
		d.Header.Set("webhook-id", d.ID)
		d.Header.Set("webhook-timestamp", at)
		d.Header.Set("webhook-signature", SignStandard(g.hook.signing, d.ID, at, body))
	}
	g.sent = append(g.sent, d)
	url := g.hook.url
	g.wg.Go(func() {
		defer close(d.done)
		g.send(url, d)
	})
}

func (g *GitLab) send(url string, d *Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), hookTimeout)
	defer cancel()
	status, response, err := post(ctx, url, d.Header, d.Body)
	g.state.Lock()
	defer g.state.Unlock()
	d.Status, d.Response, d.Err = status, response, err
}

// Deliveries so far, as copies; call Settle first to see their answers.
func (g *GitLab) Deliveries() []Delivery {
	g.state.Lock()
	defer g.state.Unlock()
	return copies(g.sent)
}

// Settle waits for deliveries under way.
func (g *GitLab) Settle() {
	for _, d := range g.Deliveries() {
		<-d.done
	}
}

// Redeliver sends a delivery again: the idempotency key and the body stay.
func (g *GitLab) Redeliver(id string) (Delivery, error) {
	g.state.Lock()
	i := slices.IndexFunc(g.sent, func(d *Delivery) bool { return d.ID == id })
	if i < 0 {
		g.state.Unlock()
		return Delivery{}, fmt.Errorf("redeliver %s: there is no such delivery", id)
	}
	d, url := g.sent[i], g.hook.url
	d.Redeliveries++
	g.state.Unlock()
	g.send(url, d)
	g.state.Lock()
	defer g.state.Unlock()
	return *d, d.Err
}

// LabelIssue adds a label as actor would by hand; with a hook set, the delivery is complete when it returns.
func (g *GitLab) LabelIssue(number int, label, actor string) (Delivery, error) {
	before := len(g.Deliveries())
	err := g.onIssue(number, func(is *issue) error {
		if slices.Contains(is.labels, label) {
			return fmt.Errorf("label issue %d: it has the label %q already; remove it first", number, label)
		}
		g.changeLabels(is, []string{label}, nil, g.addIfNew(actor))
		return nil
	})
	if err != nil {
		return Delivery{}, err
	}
	g.Settle()
	if all := g.Deliveries(); len(all) > before {
		d := all[len(all)-1]
		return d, d.Err
	}
	return Delivery{}, nil
}

// UnlabelIssue removes a label as actor would.
func (g *GitLab) UnlabelIssue(number int, label, actor string) error {
	return g.onIssue(number, func(is *issue) error {
		g.changeLabels(is, nil, []string{label}, g.addIfNew(actor))
		return nil
	})
}

// stampIssue notes that an issue changed now.
func (g *GitLab) stampIssue(is *issue) time.Time {
	is.updated = g.now()
	return is.updated
}
