package app

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-ci/proctor/internal/gate"
	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/probe"
)

const (
	imageProbe = "docker-build"
	// imageArgv marks a gate that is no process of ours. It is no path and no program, so that nothing runs should
	// it ever be taken for one.
	imageArgv = "proctor: docker-build"
)

func isImage(g gate.Spec) bool { return len(g.Argv) == 3 && g.Argv[0] == imageArgv }

// imageOutput is how much of what a build prints is kept.
const imageOutput = 8 << 20

// buildImage asks the job's builder for an image of what lies at a place: of the commit, not of the directory.
func (s *session) buildImage(ctx context.Context, spec gate.Spec, at place) (gate.Result, error) {
	r := gate.Result{Class: spec.Class, Name: spec.Name, Argv: spec.Argv, Shown: spec.Shown, Sealed: at.Sealed}
	if s.req.builder == "" {
		r.Status, r.ExitCode = gate.Broken, 127
		r.Detail = "docker-build needs an image builder and the job names none: set PROCTOR_DOCKER_HOST to the address of one, such as unix:///run/user/1001/docker.sock, or take the probe out"
		return r, nil
	}
	limit := spec.Timeout
	if limit <= 0 {
		limit = gate.DefaultTimeout
	}
	build, done := context.WithTimeout(ctx, limit)
	defer done()
	var out bytes.Buffer
	began := s.env.Now()
	image := probe.Image{Builder: s.req.builder, File: spec.Argv[1], Tag: "proctor-probe:" + s.id}
	err := image.Build(build, func(w *tar.Writer) error { return s.sendContext(build, w, at, spec.Argv[2]) }, &capped{&out})
	r.Duration = s.env.Now().Sub(began)
	r.Bytes = int64(out.Len())
	sum := sha256.Sum256(out.Bytes())
	r.Digest = "sha256:" + hex.EncodeToString(sum[:])
	if !at.Sealed && at.KeepOutput {
		r.Output = append([]byte{}, out.Bytes()...)
	}
	var failed *probe.BuildError
	switch {
	case err == nil:
		r.Status = gate.Passed
	case ctx.Err() != nil:
		r.Status, r.ExitCode, r.Detail = gate.Stopped, -1, "the run was cancelled"
	case build.Err() != nil:
		r.Status, r.ExitCode, r.Detail = gate.TimedOut, -1, fmt.Sprintf("not finished after %s", limit)
	case errors.As(err, &failed):
		r.Status, r.ExitCode = gate.Failed, 1
	default:
		r.Status, r.ExitCode, r.Detail = gate.Broken, 126, err.Error()
	}
	return r, nil
}

// sendContext writes the commit's files below a folder. Held-out files are never sent: a builder keeps layers.
func (s *session) sendContext(ctx context.Context, w *tar.Writer, at place, folder string) error {
	tree, err := s.store.Tree(ctx, at.commit)
	if err != nil {
		return err
	}
	prefix := ""
	if folder != "." {
		prefix = folder + "/"
	}
	list, err := s.store.Files(ctx, tree, trimDot(folder))
	if err != nil {
		return err
	}
	sealed, err := s.sealed()
	if err != nil {
		return err
	}
	var names []string
	for p := range list {
		if sealed == nil || !sealed(prefix+p) {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	for _, p := range names {
		if err := s.sendFile(ctx, w, p, list[p]); err != nil {
			return fmt.Errorf("send %q to the builder: %w", p, err)
		}
	}
	return nil
}

func (s *session) sendFile(ctx context.Context, w *tar.Writer, p string, e git.Entry) error {
	b, err := s.store.ReadBlob(ctx, e.ID, 0)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: p, Typeflag: tar.TypeReg, Mode: int64(e.Mode & 0o777), Size: int64(len(b)), Format: tar.FormatPAX}
	if e.Mode == git.ModeSymlink {
		h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeSymlink, string(b), 0, 0o777
		return w.WriteHeader(h)
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func trimDot(folder string) string {
	if folder == "." {
		return ""
	}
	return folder
}

// capped keeps the first imageOutput bytes.
type capped struct{ buf *bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := imageOutput - c.buf.Len(); room > 0 {
		c.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
