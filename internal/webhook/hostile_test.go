package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-ci/proctor/internal/webhook"
	"github.com/proctor-ci/proctor/internal/webhook/bolt"
)

// INV-45: ten thousand deliveries of one event at once, by as many requests as the machine makes of them, on the durable queue and
// store: one run, and every one of them answered.
func TestTenThousandConcurrentDuplicatesAreOneRun(t *testing.T) {
	t.Parallel()
	began := time.Now()
	stopped := func() time.Time { return began } // on a slow machine the first claim would lapse before the last request is read
	f, err := bolt.Open(filepath.Join(t.TempDir(), "webhook.db"), stopped)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r := newRig(t, func(c *webhook.Config) { c.Store, c.Now = f, stopped })
	body := labeled(3, nil)
	var dispatched, others atomic.Int64
	var wg sync.WaitGroup
	for range 10_000 {
		wg.Go(func() {
			switch g := r.deliver("issues", "d1", body); {
			case g.Status == "dispatched":
				dispatched.Add(1)
			case g.Status != "duplicate" && g.Reason != "in_flight":
				others.Add(1)
			}
		})
	}
	wg.Wait()
	if dispatched.Load() != 1 || others.Load() != 0 || r.w.dispatched() != 1 {
		t.Errorf("%d answered as dispatched, %d otherwise, %d runs", dispatched.Load(), others.Load(), r.w.dispatched())
	}
}

// A body of the largest size that a forge sends is read whole and refused by its signature; one byte more is not read.
func TestTheLargestBodyIsReadInBoundedMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const limit = 25 << 20
	pad := func(n int) []byte {
		head := []byte(`{"zen":"`)
		return append(append(head, bytes.Repeat([]byte("x"), n-len(head)-2)...), '"', '}')
	}
	full := pad(limit)
	if g := r.deliver("ping", "d1", full); g.Code != http.StatusAccepted {
		t.Errorf("25 MB: %v", g)
	}
	if g := r.deliver("ping", "d2", pad(limit+1)); g.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a byte more: %v", g)
	}
	req := githubRequest("ping", "d3", full)
	req.ContentLength, req.Body = -1, io.NopCloser(io.MultiReader(bytes.NewReader(full), strings.NewReader("x")))
	if g := send(r.h, req); g.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a byte more without a length: %v", g)
	}
}

// A client that sends a byte now and then holds a connection, not memory, and not for ever. The announced length is not
// believed before it is sent. It runs beside no other test: the heap it measures is the process's.
func TestAClientThatDawdlesIsCutOff(t *testing.T) {
	r := newRig(t, func(c *webhook.Config) { c.Now = time.Now })
	srv := httptest.NewUnstartedServer(r.h)
	srv.Config.ReadHeaderTimeout, srv.Config.ReadTimeout = 200*time.Millisecond, 300*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	before := heap()
	var conns []net.Conn
	for i := range 200 {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: issues\r\nContent-Length: %d\r\n\r\n{", 25<<20)
		if i%2 == 0 {
			head = "POST / HTTP/1.1\r\nHost: x\r\nX-A" // never ends its header
		}
		if _, err := io.WriteString(c, head); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 200*(256<<10) {
		t.Errorf("200 clients that announce 25 MB each hold %d MB", grown>>20)
	}
	// Meanwhile others are served.
	body := []byte(`{"zen":"x","hook_id":1}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = githubRequest("ping", "d1", body).Header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("a client beside them: %d", resp.StatusCode)
	}
	for _, c := range conns {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatal("a client that dawdles is still connected")
		}
		_ = c.Close()
	}
}

// heap is what is in use, in bytes, without what nobody holds any longer.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Whatever is inside of an invocation, it is answered, and only what is signed is acted on.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"rawPath":"/","requestContext":{"http":{"method":"POST"}},"body":"{}","isBase64Encoded":false}`))
	f.Add([]byte(`{"Records":[{"messageId":"m","eventSource":"aws:sqs","body":"{\"Version\":1,\"Body\":\"b\",\"Trigger\":{\"Kind\":\"comment\"}}"}]}`))
	f.Add([]byte(`{"source":"aws.events"}`))
	f.Add([]byte(`{"httpMethod":"POST","path":"/","multiValueHeaders":{"a":null}}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		r := newRig(t, nil)
		out, err := r.h.Invoke(t.Context(), event)
		if err != nil && !errors.Is(err, webhook.ErrBatch) {
			t.Fatal(err)
		}
		if a, ok := out.(webhook.LambdaResponse); ok && (a.StatusCode < 200 || r.w.dispatched() > 0) {
			t.Errorf("%+v, %d dispatched", a, r.w.dispatched())
		}
	})
}

// Any body under any event name is answered once its signature holds.
func FuzzEvent(f *testing.F) {
	for _, e := range []string{"issues", "issue_comment", "pull_request", "workflow_run", "ping", "installation"} {
		f.Add(e, labeled(3, nil))
		f.Add(e, commented(3, 9, "/proctor budget +5", nil))
	}
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		r, k := queued(t)
		g := r.deliver(event, "d1", body)
		if g.Code != 202 && g.Code != 400 {
			t.Errorf("%s %q: %v", event, body, g)
		}
		for _, m := range k.sent {
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var back webhook.Message
			if err := json.Unmarshal(raw, &back); err != nil {
				t.Fatal(err)
			}
			if _, err := r.h.Work(t.Context(), back); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
		}
	})
}
