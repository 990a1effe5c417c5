package probe_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-ci/proctor/internal/probe"
)

const (
	dockerVersion = `{"Components":[{"Name":"Engine","Version":"27.0.1"},{"Name":"containerd"}]}`
	podmanVersion = `{"Components":[{"Name":"Podman Engine","Version":"4.3.1"},{"Name":"Conmon"}]}`
	imageID       = "sha256:ee6be11a821f0345cc48fb5a92cdefb3dba7841c3f5893e1c1eef6571eaeb7ce"
	built         = `{"stream":"STEP 1/1: FROM scratch\n"}` + "\n" + `{"aux":{"ID":"` + imageID + `"}}` + "\n" + `{"stream":"Successfully built\n"}` + "\n"
)

// builder speaks the part of the Docker Engine API that a build uses.
type builder struct {
	version, answer string
	status          int // of the build; 0: 200
	removal         int // of the removal; 0: 200
	query           string
	context         map[string]string
	removed         []string
}

func (b *builder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, b.version)
	case r.URL.Path == "/build":
		b.query, b.context = r.URL.RawQuery, map[string]string{}
		for files := tar.NewReader(r.Body); ; {
			h, err := files.Next()
			if err != nil {
				break
			}
			text, _ := io.ReadAll(files)
			b.context[h.Name] = string(text)
		}
		if b.status != 0 {
			w.WriteHeader(b.status)
		}
		fmt.Fprint(w, b.answer)
	case r.Method == http.MethodDelete:
		b.removed = append(b.removed, r.URL.Path)
		if b.removal != 0 {
			w.WriteHeader(b.removal)
		}
	}
}

// listen serves the builder at a socket and gives its address.
func (b *builder) listen(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "builder") // a socket's path may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: b}}
	server.Start()
	t.Cleanup(server.Close)
	return "unix://" + filepath.Join(dir, "s")
}

func send(w *tar.Writer) error {
	const text = "FROM scratch\n"
	if err := w.WriteHeader(&tar.Header{Name: "Dockerfile", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := io.WriteString(w, text)
	return err
}

func TestABuilderIsAskedForAnImageWithoutANetwork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ version, network string }{
		"docker": {dockerVersion, "networkmode=none"}, "podman": {podmanVersion, "networkmode=NetworkDisabled"},
	} {
		b := &builder{version: c.version, answer: built}
		var out bytes.Buffer
		if err := (probe.Image{Builder: b.listen(t), File: "Dockerfile", Tag: "probe:1"}).Build(t.Context(), send, &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.Contains(b.query+"&", c.network+"&") || strings.Count(b.query, "networkmode") != 1 {
			t.Errorf("%s is asked %s", name, b.query)
		}
		if b.context["Dockerfile"] != "FROM scratch\n" || len(b.context) != 1 || out.String() != "STEP 1/1: FROM scratch\nSuccessfully built\n" {
			t.Errorf("%s got %q and printed %q", name, b.context, out.String())
		}
		if len(b.removed) != 1 || !strings.Contains(b.removed[0], imageID) {
			t.Errorf("%s: removed are %q", name, b.removed)
		}
	}
}

func TestOnlyAnImageThatTheBuilderNamesIsBuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		b      builder
		failed bool // the candidate's fault
		says   string
	}{
		"a step that fails":             {builder{version: dockerVersion, answer: `{"stream":"go build\n"}` + "\n" + `{"error":"exit status 1"}`}, true, ""},
		"an error behind an image":      {builder{version: dockerVersion, answer: built + `{"error":"exit status 1"}`}, true, ""},
		"no Dockerfile":                 {builder{version: dockerVersion, answer: `{"message":"cannot find it"}`, status: 400}, true, ""},
		"a step that prints an answer":  {builder{version: dockerVersion, answer: `{"stream":"{\"aux\":{\"ID\":\"` + imageID + `\"}}\n"}`}, false, "without naming an image"},
		"an id of another kind":         {builder{version: dockerVersion, answer: `{"aux":{"ID":"latest"}}`}, false, "without naming an image"},
		"an empty answer":               {builder{version: dockerVersion}, false, "without naming an image"},
		"an answer that is cut":         {builder{version: dockerVersion, answer: `{"stream":"STEP`}, false, "read the builder's answer"},
		"a page":                        {builder{version: dockerVersion, answer: "<html>"}, false, "read the builder's answer"},
		"an endless line":               {builder{version: dockerVersion, answer: `{"stream":"` + strings.Repeat("x", 2<<20)}, false, "read the builder's answer"},
		"an engine at its end":          {builder{version: dockerVersion, status: 500}, false, "500"},
		"somebody else":                 {builder{version: "hello", answer: built}, false, "version"},
		"an image that cannot be taken": {builder{version: dockerVersion, answer: built, removal: 409}, false, "remove the image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := c.b
			err := probe.Image{Builder: b.listen(t), File: "Dockerfile", Tag: "probe:1"}.Build(t.Context(), send, io.Discard)
			var failed *probe.BuildError
			if err == nil || errors.As(err, &failed) != c.failed || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWithoutABuilderNothingIsBuiltOrFailed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "unix://", "ssh://host", "unix://" + filepath.Join(t.TempDir(), "none"), "tcp://127.0.0.1:1"} {
		err := probe.Image{Builder: address, File: "Dockerfile", Tag: "probe:1"}.Build(t.Context(), send, io.Discard)
		if !errors.Is(err, probe.ErrNoBuilder) {
			t.Errorf("%q: %v", address, err)
		}
	}
	b := &builder{version: dockerVersion, answer: built}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := (probe.Image{Builder: b.listen(t), File: "Dockerfile", Tag: "probe:1"}).Build(ctx, send, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a build that is cancelled: %v", err)
	}
}
