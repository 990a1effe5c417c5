package toolloop

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// newSlowServer begins an answer and falls silent until the client goes.
func newSlowServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s
}

// newPlainServer answers with a page, as a gateway's login does.
func newPlainServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>Sign in</h1>")
	}))
	t.Cleanup(s.Close)
	return s
}
