package webhook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/proctor-ci/proctor/internal/policy"
	"github.com/proctor-ci/proctor/internal/trigger"
)

// ServeHTTP takes one delivery. It answers within Config.Timeout and a little, and finishes what it began when the
// caller goes away: a forge that stops listening must not leave a claim half done.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Exchange != nil && r.URL.Path == PathToken {
		h.token(w, r)
		return
	}
	if a, done := h.route(r); done {
		a.write(w)
		return
	}
	start := h.cfg.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), h.cfg.Timeout)
	defer cancel()
	var d delivery
	a := guarded(&d, func() answer {
		body, a, ok := h.receive(w, r, &d)
		if !ok {
			return a
		}
		return h.handle(ctx, body, &d)
	})
	a.write(w)
	h.cfg.Log.LogAttrs(ctx, level(a), "delivery", d.attrs(a, h.cfg.Now().Sub(start).Milliseconds())...)
}

// level: what needs somebody's eye stands out; what anybody on the internet can cause does not.
func level(a answer) slog.Level {
	if a.Status == StatusRetry || a.Status == StatusFailed {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// route answers what is no delivery. Scanners get no log line.
func (h *Handler) route(r *http.Request) (answer, bool) {
	if r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return answer{Code: http.StatusOK, Status: "ok"}, true
	}
	ours := slices.ContainsFunc(h.cfg.Paths, func(p string) bool {
		return r.URL.Path == p || p != "/" && strings.HasSuffix(r.URL.Path, p)
	})
	switch {
	case !ours:
		return invalid(http.StatusNotFound, "path", "deliveries go to "+strings.Join(h.cfg.Paths, ", ")), true
	case r.Method != http.MethodPost:
		return invalid(http.StatusMethodNotAllowed, "method", "deliveries are POST requests; GET /healthz answers a health check"), true
	}
	return answer{}, false
}

// guarded turns a panic into an answer: one bad delivery must not take a process down.
func guarded(d *delivery, f func() answer) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			d.cause = errors.New("panic while handling a delivery")
			a = later("internal")
		}
	}()
	return f()
}

// receive is everything up to the signature: size, encoding, headers, and the body as raw bytes.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, d *delivery) ([]byte, answer, bool) {
	if r.ContentLength > h.cfg.MaxBody {
		return nil, tooLarge(), false
	}
	if a, ok := checkEncoding(r.Header); !ok {
		return nil, a, false
	}
	body, err := readBody(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody), r.ContentLength)
	d.bytes = len(body)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, tooLarge(), false
	case err != nil:
		return nil, invalid(http.StatusBadRequest, "body", "the request ended before its body did"), false
	}
	event, a, ok := h.authentic(r.Header, body, d)
	if !ok {
		return nil, a, false
	}
	if event == "" {
		return nil, invalid(http.StatusBadRequest, "event", "the event header is missing, empty or repeated"), false
	}
	d.event = clip(event)
	if len(body) == 0 {
		return nil, invalid(http.StatusBadRequest, "body", "the body is empty"), false
	}
	return body, answer{}, true
}

// readBody makes room once where the length is announced, and grows where it is not.
func readBody(r io.Reader, announced int64) ([]byte, error) {
	if announced <= 0 {
		return io.ReadAll(r)
	}
	// An announced length is only believed as far as it is cheap: a body that stalls must not hold 25 MB.
	body := make([]byte, 0, min(announced, 64<<10)+1)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return body, err
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
}

func tooLarge() answer {
	return invalid(http.StatusRequestEntityTooLarge, "size", "no forge sends a payload of that size")
}

func checkEncoding(h http.Header) (answer, bool) {
	for _, e := range h["Content-Encoding"] {
		if !strings.EqualFold(e, "identity") && e != "" {
			return invalid(http.StatusUnsupportedMediaType, "encoding", "send the body without a Content-Encoding"), false
		}
	}
	for _, ct := range h["Content-Type"] {
		if media, _, err := mime.ParseMediaType(ct); err != nil || media != "application/json" {
			return invalid(http.StatusUnsupportedMediaType, "content_type", "set the webhook's content type to application/json"), false
		}
	}
	return answer{}, true
}

// authentic verifies the delivery as the forge whose headers it carries. Headers of both are refused:
// whoever sends those picks which check to pass.
func (h *Handler) authentic(hd http.Header, body []byte, d *delivery) (event string, a answer, ok bool) {
	refused := invalid(http.StatusUnauthorized, "signature", "the delivery is not signed with a secret that is set here: enter the value of PROCTOR_WEBHOOK_SECRET, or on GitLab of PROCTOR_GITLAB_WEBHOOK_TOKEN, at the forge")
	gitlab := len(hd[headerLabEvent])+len(hd[headerLabToken])+len(hd[headerHookSig]) > 0
	github := len(hd[headerHubEvent])+len(hd[headerHubSignature]) > 0
	switch {
	case gitlab && github:
		return "", refused, false
	case gitlab:
		if !h.validGitLab(hd, body) {
			return "", refused, false
		}
		d.forge = trigger.GitLab
		event, _ = one(hd, headerLabEvent)
		if d.id, ok = one(hd, headerLabKey); !ok {
			d.id, _ = one(hd, headerHookID)
		}
	default:
		if !validGitHub(h.cfg.GitHubSecrets, hd, body) {
			return "", refused, false
		}
		d.forge = trigger.GitHub
		event, _ = one(hd, headerHubEvent)
		d.id, _ = one(hd, headerHubDelivery)
	}
	d.id = trigger.CleanDelivery(d.id)
	return event, answer{}, true
}

// handle reads a verified delivery and sends it the way of its kind: at once, or by way of the queue.
func (h *Handler) handle(ctx context.Context, body []byte, d *delivery) answer {
	if a, done := h.read(body, d); done {
		return a
	}
	if h.cfg.Queue == nil {
		return h.act(ctx, d)
	}
	if err := h.cfg.Queue.Send(ctx, d.message()); err != nil {
		d.cause = err
		return later("queue")
	}
	return accepted(StatusQueued, "")
}

// read parses a delivery and answers all that the event alone can answer.
func (h *Handler) read(body []byte, d *delivery) (answer, bool) {
	// A workflow_dispatch is a run that has begun: answering it with another dispatch would never end.
	if d.event == "workflow_dispatch" {
		return accepted(StatusIgnored, string(trigger.ReasonEvent)), true
	}
	t, err := h.parse(d, body)
	var ignored *trigger.Ignored
	switch {
	case errors.As(err, &ignored):
		a := accepted(StatusIgnored, string(ignored.Reason))
		if ignored.Reason == trigger.ReasonLabel {
			a.Hint = "another label than the one that starts runs: PROCTOR_LABEL, or proctor where it is not set"
		}
		return a, true
	case err != nil:
		return invalid(http.StatusBadRequest, "shape", "the body is not the event that its header names"), true
	}
	t.Delivery = d.id
	d.t, d.body = t, bodyKey(body)
	switch {
	case t.Kind == trigger.KindPing, t.Kind == trigger.KindInstall:
		return accepted(StatusRecorded, string(t.Kind)), true
	case !h.serves(t.Repo):
		return accepted(StatusRefused, "repository"), true
	case t.Kind == trigger.KindReview && (t.Change.FromFork || h.issueOfBranch(t.Change.Head) == 0):
		// People review each other's work all day. Whether a branch of our name is ours, the run finds out.
		return accepted(StatusIgnored, "other_branch"), true
	case t.Kind == trigger.KindCheck:
		if a, done := h.readCheck(d); done {
			return a, true
		}
	case t.Kind == trigger.KindRun, t.Kind == trigger.KindClosed, h.explains(t):
		return answer{}, false
	}
	if dec := policy.Precheck(d.t, h.cfg.Rules); !dec.Allow {
		return accepted(StatusRefused, string(dec.Reason)), true
	}
	return answer{}, false
}

// act does what a delivery that was read asks for.
func (h *Handler) act(ctx context.Context, d *delivery) answer {
	switch {
	case d.t.Kind == trigger.KindRun:
		return h.progress(ctx, d)
	case d.t.Kind == trigger.KindClosed:
		return h.closed(ctx, d)
	case h.explains(d.t):
		return h.explain(ctx, d)
	}
	return h.request(ctx, d)
}

// explains: a command that is answered from here.
func (h *Handler) explains(t trigger.Trigger) bool {
	if t.Kind != trigger.KindComment {
		return false
	}
	info, ok := t.Command.Info()
	return !ok || info.Hook
}

func (h *Handler) parse(d *delivery, body []byte) (trigger.Trigger, error) {
	if d.forge == trigger.GitLab {
		return trigger.ParseGitLab(d.event, body, h.cfg.Options)
	}
	return trigger.ParseGitHub(d.event, body, h.cfg.Options)
}

func (h *Handler) serves(r trigger.Repo) bool {
	if len(h.cfg.Repos) == 0 {
		return true
	}
	_, ok := h.repos.Match(r.FullName())
	// A folded set covers malformed names: here that would let them in.
	return ok && !strings.Contains(r.FullName(), "..") && !strings.Contains(r.FullName(), "//")
}
