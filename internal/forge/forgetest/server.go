package forgetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// server is what both forges share: a listener on loopback, a log of requests, faults.
type server struct {
	http   *http.Server
	url    string
	faults faults

	mu       sync.Mutex
	requests []Request
	wg       sync.WaitGroup // deliveries under way
}

// Request is one request as it arrived, in order. Path is without the API prefix.
type Request struct {
	Method, Path, Query string
	Body                []byte
	// Account is the login of the token that was presented, "" when none was known.
	Account string
	// Status is 0 while the answer is under way, and when there was none.
	Status int
	Git    bool
}

// start listens on a free loopback port.
func (s *server) start(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	s.url = "http://" + l.Addr().String()
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.wg.Go(func() { s.http.Serve(l) })
	return nil
}

// Close stops the server and waits for deliveries under way.
func (s *server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	s.wg.Wait()
	return nil
}

// Requests that arrived so far.
func (s *server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count of requests whose "METHOD /path" fits a pattern as of Fail.
func (s *server) Count(match string) int {
	n := 0
	for _, r := range s.Requests() {
		f := faults{armed: []*armed{{match: match, left: -1}}}
		if f.take(r.Method, r.Path) != nil {
			n++
		}
	}
	return n
}

// Fail arms a fault for the next times requests whose "METHOD /path" (without the API prefix) fits
// match, where * stands for one segment and ** for any; times -1 means always.
func (s *server) Fail(match string, times int, f Fault) error { return s.faults.add(match, times, f) }

// Unmet names armed faults that did not happen.
func (s *server) Unmet() []string { return s.faults.unused() }

// record notes a request as it arrives, so that whoever has its answer also sees it here; the
// returned function adds the status.
func (s *server) record(r Request) (ended func(status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.requests)
	s.requests = append(s.requests, r)
	return func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests[i].Status = status
	}
}

// obj is a JSON object on its way out.
type obj map[string]any

// apiError is a refusal in the forge's own words.
type apiError struct {
	status int
	body   obj
}

func (e *apiError) Error() string { return fmt.Sprint(e.status, " ", e.body) }

func writeJSON(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(buf.Bytes())
}

// secret is n random bytes in hex.
func secret(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// uuid is a random (version 4) id, as deliveries carry.
func uuid() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// statusWriter remembers the status for the request log.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusWriter) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}
