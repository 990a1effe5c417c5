package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// INV-44: every vector. The vectors that are accepted are the control of those that are not.
func TestEverySignatureVectorIsAnsweredAsItSays(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../shared/corpus/signature-vectors.json")
	if err != nil {
		t.Skipf("the corpus is not beside this checkout (%v); put it at ../shared/corpus to run this test", err)
	}
	var file struct {
		Vectors []struct {
			ID, Secret, Verdict, Forge, Why string
			Body                            []byte `json:"body_b64"`
			Headers                         map[string]string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vectors {
		t.Run("INV-44 "+v.ID, func(t *testing.T) {
			t.Parallel()
			key := v.Secret
			if v.ID == "V22-other-secret" {
				// Its point is a secret that is not ours.
				key = secret + "!"
			}
			r := newRig(t, func(c *webhook.Config) {
				c.GitHubSecrets, c.GitLabTokens = []string{key}, nil
				if v.Forge == "gitlab" {
					c.GitHubSecrets, c.GitLabTokens = nil, []string{key}
				}
			})
			g := send(r.h, withHeaders(v.Body, v.Headers))
			refused := g.Code == http.StatusUnauthorized || g.Code == http.StatusUnsupportedMediaType
			switch v.Verdict {
			case "accept":
				if refused {
					t.Errorf("%v, want the signature accepted: %s", g, v.Why)
				}
			case "reject":
				if !refused {
					t.Errorf("%v, want it refused: %s", g, v.Why)
				}
			case "signature-ok-then-400":
				req := withHeaders(v.Body, v.Headers)
				req.Header.Set("X-GitHub-Event", "issues")
				if g := send(r.h, req); g.Code != http.StatusBadRequest {
					t.Errorf("%v, want 400: %s", g, v.Why)
				}
			case "accept-or-reject":
				if g2 := send(r.h, withHeaders(v.Body, v.Headers)); g2.Code != g.Code {
					t.Errorf("%v and then %v, want one answer", g, g2)
				}
			default:
				t.Errorf("unknown verdict %q", v.Verdict)
			}
			if strings.Contains(g.Raw+r.log.String(), "757107ea") || strings.Contains(g.Raw+r.log.String(), "Hello, World") {
				t.Errorf("the answer or the log carries the digest or the body: %s %s", g.Raw, r.log)
			}
		})
	}
}

func withHeaders(body []byte, headers map[string]string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	return r
}

// INV-44: what the vectors cannot carry.
func TestDeliveriesAreRefusedBeforeTheyAreParsed(t *testing.T) {
	t.Parallel()
	body := labeled(1, nil)
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		want   string
	}{
		{"control: as it should be", func(*http.Request) {}, "202 dispatched "},
		{"upper-case digest", func(r *http.Request) {
			r.Header.Set("X-Hub-Signature-256", "sha256="+strings.ToUpper(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")))
		}, "401 invalid signature"},
		{"signature sent twice", func(r *http.Request) { r.Header.Add("X-Hub-Signature-256", r.Header.Get("X-Hub-Signature-256")) }, "401 invalid signature"},
		{"signatures joined by a comma", func(r *http.Request) {
			r.Header.Set("X-Hub-Signature-256", r.Header.Get("X-Hub-Signature-256")+", "+r.Header.Get("X-Hub-Signature-256"))
		}, "401 invalid signature"},
		{"signed with the empty secret", func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", sign("", body)) }, "401 invalid signature"},
		{"headers of both forges", func(r *http.Request) { r.Header.Set("X-Gitlab-Token", "glt-SAMPLE") }, "401 invalid signature"},
		{"event sent twice", func(r *http.Request) { r.Header.Add("X-GitHub-Event", "issues") }, "400 invalid event"},
		{"no event", func(r *http.Request) { r.Header.Del("X-GitHub-Event") }, "400 invalid event"},
		{"compressed", func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, "415 invalid encoding"},
		{"a form", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, "415 invalid content_type"},
		{"JSON with a charset", func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, "202 dispatched "},
		{"announced too large", func(r *http.Request) { r.ContentLength = 26 << 20 }, "413 invalid size"},
		{"too large without saying so", func(r *http.Request) {
			r.ContentLength = -1
			r.Body = readCloser{bytes.NewReader(make([]byte, 26<<20))}
		}, "413 invalid size"},
		{"another path", func(r *http.Request) { r.URL.Path = "/admin" }, "404 invalid path"},
		{"a path behind a stage", func(r *http.Request) { r.URL.Path = "/prod/github" }, "202 dispatched "},
		{"GET", func(r *http.Request) { r.Method = http.MethodGet }, "405 invalid method"},
		{"PUT", func(r *http.Request) { r.Method = http.MethodPut }, "405 invalid method"},
	} {
		t.Run("INV-44 "+c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			req := githubRequest("issues", "d1", body)
			c.change(req)
			if g := send(r.h, req); g.String() != c.want {
				t.Errorf("%q, want %q", g, c.want)
			}
			if n, want := r.w.dispatched(), strings.Count(c.want, "dispatched"); n != want {
				t.Errorf("%d dispatches, want %d", n, want)
			}
		})
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func TestTwoSecretsWorkDuringARotation(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *webhook.Config) { c.GitHubSecrets = []string{"the-new-secret-of-ours", secret} })
	for i, key := range []string{"the-new-secret-of-ours", secret, "some-other-secret-of-theirs"} {
		body := labeled(i+1, nil)
		req := githubRequest("issues", strconv.Itoa(i), body)
		req.Header.Set("X-Hub-Signature-256", sign(key, body))
		if g := send(r.h, req); (g.Code == http.StatusAccepted) != (i < 2) {
			t.Errorf("INV-44 secret %d: %v", i, g)
		}
	}
}

func TestStandardWebhooksSignaturesAreChecked(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	body := []byte(`{"object_kind":"push"}`)
	signed := func(id, at string, body []byte) string {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(id + "." + at + "."))
		m.Write(body)
		return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	}
	r := newRig(t, func(c *webhook.Config) {
		c.GitLabSigning = []string{"whsec_" + base64.StdEncoding.EncodeToString(key)}
	})
	now := r.clock.Now()
	at := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	for _, c := range []struct {
		name     string
		id, time string
		sig      string
		token    string
		want     int
	}{
		{"right", "m1", at(0), signed("m1", at(0), body), "", 202},
		{"right, second of two", "m1", at(0), "v1,AAAA " + signed("m1", at(0), body), "", 202},
		{"another version only", "m1", at(0), "v2" + signed("m1", at(0), body)[2:], "", 401},
		{"other id", "m2", at(0), signed("m1", at(0), body), "", 401},
		{"other body", "m1", at(0), signed("m1", at(0), []byte("x")), "", 401},
		{"too old", "m1", at(-6 * time.Minute), signed("m1", at(-6*time.Minute), body), "", 401},
		{"too new", "m1", at(6 * time.Minute), signed("m1", at(6*time.Minute), body), "", 401},
		{"a little old", "m1", at(-4 * time.Minute), signed("m1", at(-4*time.Minute), body), "", 202},
		{"no time", "m1", "soon", signed("m1", "soon", body), "", 401},
		{"wrong signature beside a right token", "m1", at(0), "v1,AAAA", "glt-SAMPLE", 401},
		{"token alone", "", "", "", "glt-SAMPLE", 202},
	} {
		req := httptest.NewRequest(http.MethodPost, "/gitlab", bytes.NewReader(body))
		req.Header.Set("X-Gitlab-Event", "Push Hook")
		for k, v := range map[string]string{"webhook-id": c.id, "webhook-timestamp": c.time, "webhook-signature": c.sig, "X-Gitlab-Token": c.token} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		if g := send(r.h, req); g.Code != c.want {
			t.Errorf("%s: %v, want %d", c.name, g, c.want)
		}
	}
}

func TestASecretThatCannotProtectIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	connect := func(context.Context, webhook.Target) (webhook.Forge, error) { return nil, nil }
	store := webhook.NewMemory(time.Now)
	for _, c := range []struct {
		name string
		cfg  webhook.Config
		want string
	}{
		{"none", webhook.Config{}, "no webhook secret is set"},
		{"empty", webhook.Config{GitHubSecrets: []string{""}}, "is empty"},
		{"blank", webhook.Config{GitHubSecrets: []string{" \t\n"}}, "is empty"},
		{"E22 newline pasted along", webhook.Config{GitHubSecrets: []string{secret + "\n"}}, "white space"},
		{"short", webhook.Config{GitHubSecrets: []string{"hunter2"}}, "openssl rand -hex 32"},
		{"second one short", webhook.Config{GitHubSecrets: []string{secret, "hunter2"}}, "at least 16"},
		{"short GitLab token", webhook.Config{GitLabTokens: []string{"abc"}}, "at least 10"},
		{"signing token that is no key", webhook.Config{GitLabSigning: []string{"whsec_???"}}, "whsec_"},
		{"a bad repository pattern", webhook.Config{GitHubSecrets: []string{secret}, Repos: []string{"octo/**x"}}, "owner/name"},
		{"control", webhook.Config{GitHubSecrets: []string{secret}}, ""},
	} {
		c.cfg.Connect, c.cfg.Store = connect, store
		_, err := webhook.New(c.cfg)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("INV-44 %s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "Everybody")) {
			t.Errorf("%s: the message carries the secret: %v", c.name, err)
		}
	}
}
