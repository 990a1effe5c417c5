//go:build e2e

package app

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// tarball is a package as a registry serves it.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("the tarball cannot be written")
	}
	return b.Bytes()
}

func TestSetupByNpmFetchesFromAListedRegistry(t *testing.T) {
	// The real npm, by TLS in a tunnel and in clear, in the agent's directory, the gates' and the proofs'.
	pack := tarball(t, map[string]string{"package.json": `{"name":"says","version":"1.0.0","main":"says.js"}`, "says.js": "module.exports = 'right for sure'\n"})
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "registry.example.com" || r.URL.Path != "/says/-/says-1.0.0.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(pack)
	})
	sum := sha512.Sum512(pack)
	integrity := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	world := func(t *testing.T, server, scheme, list string) *world {
		return open(t, setting{
			env: map[string]string{reachVariable: strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")},
			files: map[string]string{
				".gitignore": "node_modules/\n",
				// The stand-in signs its own certificate.
				".npmrc":            "registry=" + scheme + "://registry.example.com/\nstrict-ssl=false\nfetch-retries=0\naudit=false\nfund=false\nupdate-notifier=false\n",
				"package.json":      `{"name":"shop","version":"1.0.0","private":true,"dependencies":{"says":"1.0.0"}}`,
				"package-lock.json": `{"name":"shop","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"shop","version":"1.0.0","dependencies":{"says":"1.0.0"}},"node_modules/says":{"version":"1.0.0","resolved":"` + scheme + `://registry.example.com/says/-/says-1.0.0.tgz","integrity":"` + integrity + `"}}}`,
				"tests/run.sh":      "node -e \"const want = require('says'), got = require('fs').readFileSync('app/answer.txt', 'utf8').trim(); process.exit(want === got ? 0 : 1)\"\n",
			},
			config: map[string]string{"setup": "[npm ci]", "sandbox": "{mode: strict, egress: ['" + list + "']}", "gates": strings.Replace(bothGates, "timeout: 20s", "timeout: 2m", 1)},
			plan:   []tick{{sh("sh tests/run.sh || node -e \"console.log(require('says'))\" > app/answer.txt"), sh("sh tests/run.sh")}},
		})
	}
	for _, c := range []struct {
		scheme, list string
		start        func(http.Handler) *httptest.Server
	}{{"https", "registry.example.com:443", httptest.NewTLSServer}, {"http", "*.example.com:80", httptest.NewServer}} {
		t.Run(c.scheme, func(t *testing.T) {
			server := c.start(serve)
			t.Cleanup(server.Close)
			j := world(t, server.URL, c.scheme, c.list).label().ended("done", 0, "proctor:review")
			if e := j.rec.Egress; e == nil || len(e.Hosts) != 1 || e.Hosts[0].Verdict != "allowed" || e.Hosts[0].Requests < 4 || e.Hosts[0].Received < int64(len(pack)) {
				t.Errorf("the record's egress is %+v", e)
			}
		})
	}
	t.Run("the control: a registry that is not listed", func(t *testing.T) {
		server := httptest.NewServer(serve)
		t.Cleanup(server.Close)
		j := world(t, server.URL, "http", "another.example.com:80").label().ended("gate_broken", 5, "proctor:failed")
		if e := j.rec.Egress; e == nil || len(e.Hosts) != 1 || e.Hosts[0].Verdict != "refused" {
			t.Errorf("the record's egress is %+v", e)
		}
	})
}
