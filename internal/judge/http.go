package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxBody bounds what is read of a model's answer.
const maxBody = 4 << 20

// HTTPError is an answer that was no success. The meter's own refusals come as one too: 402 when the ceiling is reached.
type HTTPError struct {
	Status  int
	Message string // the server's, printable, cut
}

func (e *HTTPError) Error() string {
	return fmt.Sprintf("the model API answered HTTP %d: %s", e.Status, e.Message)
}

// Endpoint is where a model is asked: the meter's loopback address, with its nonce where the key would be. Whatever API is
// spoken there, nothing is streamed or retried: the meter counts each call, and the caller decides.
type Endpoint struct {
	Client  *http.Client // required; its timeout bounds one call
	BaseURL string
	Nonce   string
	Model   string
}

// Name is the model's.
func (e Endpoint) Name() string { return e.Model }

// post makes one call and returns its answer whole.
func (e Endpoint) post(ctx context.Context, path string, header http.Header, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", e.Model, err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", e.Model, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", e.Model, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &HTTPError{Status: resp.StatusCode, Message: errorMessage(raw)}
	}
	if len(raw) > maxBody {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrUnreadable, maxBody)
	}
	return raw, nil
}

// errorMessage is what all of the APIs say alike.
func errorMessage(raw []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &e) == nil && e.Error.Message != "" {
		return cut(printable(e.Error.Message))
	}
	return "no reason given"
}

func cut(s string) string {
	if r := []rune(s); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return s
}

func errCut() error { return fmt.Errorf("%w: it was cut at the token limit", ErrUnreadable) }

func errStopped(why string) error {
	return fmt.Errorf("%w: it stopped for %q", ErrUnreadable, printable(why))
}

// oneOf is the one verdict of an answer, or its one text where a model that knows no tools answers in words. Both at
// once, or two of either, is no answer.
func oneOf(calls, texts []string) (string, error) {
	switch {
	case len(calls) == 1 && len(texts) == 0:
		return calls[0], nil
	case len(calls) == 0 && len(texts) == 1:
		return texts[0], nil
	}
	return "", fmt.Errorf("%w: it holds %d verdicts and %d texts instead of one", ErrUnreadable, len(calls), len(texts))
}
