package forgetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// pushPolicy is what the pre-receive hook needs to know about this push.
type pushPolicy struct {
	protected    []string // full ref names
	say, because string   // what a push to one of them hears; REF stands for the ref
	workflows    bool
	who, scope   string // for the words of a refusal
	maxBlob      int64
}

// Limits of the git front.
const (
	defaultMaxBlob = 100 << 20 // GitHub's 100 MB
	maxPack        = 512 << 20
	leastShare     = 8 * 1032 // of a blob's size in its pack: deflate's most, and a margin for deltas
)

// gitBackend finds the program that speaks git's protocol.
func gitBackend(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("find git: %w; install git", err)
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find git http-backend: %w; it comes with git (Debian: package git)", err)
	}
	return path, nil
}

// gitFront serves smart HTTP of one repository.
type gitFront struct {
	backend string
	root    string // GIT_PROJECT_ROOT
}

// serve hands the request to git http-backend. The body is read whole first: git sends it chunked above
// 1 MiB, and CGI needs a length.
func (f gitFront) serve(w http.ResponseWriter, r *http.Request, user string, p pushPolicy) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPack))
	if err != nil {
		http.Error(w, "request body: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	verdict, err := os.CreateTemp("", "forge-verdict-")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	verdict.Close()
	defer os.Remove(verdict.Name())

	h := &cgi.Handler{Path: f.backend, Dir: f.root, Stderr: io.Discard, Env: append(gitEnv(),
		"GIT_PROJECT_ROOT="+f.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+user,
		"FORGE_VERDICT="+verdict.Name(), "FORGE_PROTECTED="+strings.Join(p.protected, " "),
		"FORGE_WORKFLOWS="+yes(p.workflows), "FORGE_WHO="+p.who, "FORGE_SCOPE="+p.scope,
		"FORGE_PROTECTED_SAY="+p.say, "FORGE_PROTECTED_REASON="+p.because,
		"FORGE_MAX_BLOB="+strconv.FormatInt(p.maxBlob, 10), "FORGE_SMALL="+yes(int64(len(body)) < p.maxBlob/leastShare),
	)}
	if !isReceivePack(r) {
		h.ServeHTTP(w, r)
		return
	}
	held := newBuffered()
	h.ServeHTTP(held, r)
	held.body = *bytes.NewBuffer(rewriteReasons(held.body.Bytes(), readVerdicts(verdict.Name())))
	held.sendTo(w)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// wantsWrite is true for both requests of a push.
func wantsWrite(r *http.Request) bool {
	return isReceivePack(r) || strings.HasSuffix(r.URL.Path, "/info/refs") && r.URL.Query().Get("service") == "git-receive-pack"
}

func isReceivePack(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

// gitRefuse answers as the forges do: plain text that git shows as "remote: …".
func gitRefuse(w http.ResponseWriter, status int, text string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, text+"\n")
}
