package probe

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Image is an image to build: the one check that cannot run inside the confinement, because a builder needs
// what the confinement takes away. So the harness itself is the builder's client: no command of the repository
// speaks to it, and what it gets is the candidate's own tree.
type Image struct {
	Builder string // as DOCKER_HOST is written: unix:///path or tcp://host:port
	File    string // the Dockerfile, named from the context
	Tag     string // of the image, which is removed again
}

// ErrNoBuilder: nobody has said where a builder is, or nobody answers there.
var ErrNoBuilder = errors.New("no image builder")

// BuildError is a build that the builder ended as failed. Its words are in the output.
type BuildError struct{ Said string }

func (e *BuildError) Error() string { return "the image does not build" }

// Build sends the context and waits for the end, by the Docker Engine API (docs.docker.com/reference/api/engine,
// "Build an image"). Steps of the build get no network. A nil error means that the builder named the image it
// made; it is removed again. Errors are *BuildError, or say that nothing could be built.
func (i Image) Build(ctx context.Context, send func(*tar.Writer) error, out io.Writer) error {
	client, base, err := i.client()
	if err != nil {
		return err
	}
	offline, err := noNetwork(ctx, client, base)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: nobody answers at %s: %w", ErrNoBuilder, i.Builder, err)
	}
	query := url.Values{"dockerfile": {i.File}, "t": {i.Tag}, "networkmode": {offline}, "rm": {"1"}, "forcerm": {"1"}, "nocache": {"1"}}
	body, pipe := io.Pipe()
	go func() {
		w := tar.NewWriter(pipe)
		err := send(w)
		if err == nil {
			err = w.Close()
		}
		_ = pipe.CloseWithError(err) // nil is the end of the stream
	}()
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/build?"+query.Encode(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-tar")
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %s ended the conversation: %w", ErrNoBuilder, i.Builder, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		// 400 is how the builder says that the Dockerfile is missing or cannot be read.
		if resp.StatusCode == http.StatusBadRequest {
			_, _ = out.Write(said)
			return &BuildError{Said: string(said)}
		}
		return fmt.Errorf("%w: %s answers %s", ErrNoBuilder, i.Builder, resp.Status)
	}
	id, err := readBuild(resp.Body, out)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return i.remove(context.WithoutCancel(ctx), client, base, id)
}

// noNetwork is how this builder is told to give build steps no network. Podman's Docker API takes "none" for the name of a
// network and gives them the host's; it wants the name of its own setting. (containers/podman, pkg/api/handlers/compat)
func noNetwork(ctx context.Context, client *http.Client, base string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/version", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var version struct {
		Components []struct{ Name string }
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answers %s when asked for its version", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMessage)).Decode(&version); err != nil {
		return "", fmt.Errorf("read its version: %w", err)
	}
	for _, c := range version.Components {
		if c.Name == "Podman Engine" {
			return "NetworkDisabled", nil
		}
	}
	return "none", nil
}

// client speaks to the builder and to nobody else.
func (i Image) client() (*http.Client, string, error) {
	u, err := url.Parse(i.Builder)
	if err != nil || i.Builder == "" {
		return nil, "", fmt.Errorf("%w: its address %q cannot be read", ErrNoBuilder, i.Builder)
	}
	t := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	switch {
	case u.Scheme == "unix" && u.Path != "":
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", u.Path)
		}
		return &http.Client{Transport: t}, "http://builder", nil
	case u.Scheme == "tcp" && u.Host != "":
		return &http.Client{Transport: t}, "http://" + u.Host, nil
	}
	return nil, "", fmt.Errorf("%w: its address %q is neither unix:///path nor tcp://host:port", ErrNoBuilder, i.Builder)
}

// maxMessage bounds one message of the builder.
const maxMessage = 1 << 20

// readBuild copies what the steps print and finds the image's id. Only the builder writes these messages: text of a
// step is a value inside one.
func readBuild(r io.Reader, out io.Writer) (id string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
			Aux    struct {
				ID string `json:"ID"`
			} `json:"aux"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return "", fmt.Errorf("read the builder's answer: %w", err)
		}
		if _, err := io.WriteString(out, m.Stream); err != nil {
			return "", err
		}
		if m.Error != "" {
			_, _ = io.WriteString(out, m.Error+"\n")
			return "", &BuildError{Said: m.Error}
		}
		if m.Aux.ID != "" {
			id = m.Aux.ID
		}
	}
	switch {
	case lines.Err() != nil:
		return "", fmt.Errorf("read the builder's answer: %w", lines.Err())
	case !strings.HasPrefix(id, "sha256:"):
		return "", errors.New("the builder ended without naming an image")
	}
	return id, nil
}

func (i Image) remove(ctx context.Context, client *http.Client, base, id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, base+"/images/"+url.PathEscape(id)+"?force=1", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("remove the image that was built: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotFound {
		return fmt.Errorf("remove the image that was built: the builder answers %s", resp.Status)
	}
	return nil
}
