package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Unix(1_700_000_000, 0)

func TestWaitsFollowTheServersHintsInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header  map[string]string
		attempt int
		want    time.Duration
	}{
		"retry-after in seconds":          {map[string]string{"Retry-After": "30"}, 0, 30 * time.Second},
		"retry-after as a date":           {map[string]string{"Retry-After": epoch.Add(time.Minute).UTC().Format(http.TimeFormat)}, 0, time.Minute},
		"retry-after before the reset":    {map[string]string{"Retry-After": "3", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000100"}, 0, 3 * time.Second},
		"the reset when nothing remains":  {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000100"}, 0, 101 * time.Second},
		"a reset that is over":            {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1600000000"}, 0, time.Second},
		"GitLab's names":                  {map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "1700000060"}, 0, 61 * time.Second},
		"no hint, first":                  {nil, 0, time.Minute},
		"no hint, third":                  {nil, 2, 4 * time.Minute},
		"a reset while something remains": {map[string]string{"X-RateLimit-Remaining": "12", "X-RateLimit-Reset": "1700000100"}, 0, time.Minute},
		"nonsense":                        {map[string]string{"Retry-After": "soon", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "never"}, 1, 2 * time.Minute},
		"negative":                        {map[string]string{"Retry-After": "-5"}, 0, time.Minute},
		"overflowing":                     {map[string]string{"Retry-After": "99999999999999999999"}, 0, time.Minute},
	} {
		resp := &http.Response{StatusCode: 403, Header: http.Header{}}
		for k, v := range c.header {
			resp.Header.Set(k, v)
		}
		hideHints(resp)
		if got := limitWait(resp, epoch, c.attempt); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for k := range c.header {
			if resp.Header.Get(k) != "" {
				t.Errorf("%s: the client library still sees %s", name, k)
			}
		}
	}
}

func TestOnlyWhatMayBeRepeatedIsRepeated(t *testing.T) {
	t.Parallel()
	resp := func(status int) *http.Response { return &http.Response{StatusCode: status, Header: http.Header{}} }
	limited := resp(403)
	limited.Header.Set(headerLimited, "true")
	limited.Header.Set(headerRetryAfter, "1")
	for name, c := range map[string]struct {
		resp       *http.Response
		err        error
		repeatable int // calls when repeating is safe
		once       int // calls when it is not
	}{
		"a refusal":          {resp(404), errors.New("x"), 1, 1},
		"a bad gateway":      {resp(502), errors.New("x"), 5, 1},
		"not implemented":    {resp(501), errors.New("x"), 1, 1},
		"a lost connection":  {nil, io.ErrUnexpectedEOF, 5, 1},
		"no connection made": {nil, &net.OpError{Op: "dial", Err: errors.New("refused")}, 5, 5},
		"a rate limit":       {limited, errors.New("x"), 5, 5},
		"a cut answer":       {resp(200), io.ErrUnexpectedEOF, 5, 1},
		"a foreign redirect": {nil, ErrForeignHost, 1, 1},
	} {
		for safety, want := range map[Safety]int{Repeatable: c.repeatable, Once: c.once} {
			calls := 0
			r := NewRetry(func() time.Time { return epoch }, func(context.Context, time.Duration) error { return nil }, nil)
			fail := r.Do(t.Context(), "op", safety, func(context.Context, int) (*http.Response, error) {
				calls++
				return c.resp, c.err
			})
			if fail == nil || calls != want {
				t.Errorf("%s, safety %d: %d calls, want %d", name, safety, calls, want)
			}
		}
	}
}

func TestSuccessAfterFailuresIsSuccess(t *testing.T) {
	t.Parallel()
	var slept []time.Duration
	r := NewRetry(nil, func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }, nil)
	fail := r.Do(t.Context(), "op", Repeatable, func(_ context.Context, attempt int) (*http.Response, error) {
		if attempt < 3 {
			return nil, io.EOF
		}
		return nil, nil
	})
	if d := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, slept); fail != nil || d != "" {
		t.Errorf("failure %v, waits (-want +got):\n%s", fail, d)
	}
}

func TestARequestToAnotherHostIsNotSent(t *testing.T) {
	t.Parallel()
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer srv.Close()
	for _, api := range []string{"https://api.example.com", "https" + srv.URL[len("http"):], srv.URL + "0"} {
		u, err := url.Parse(api)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Client(nil, u, nil).Get(srv.URL); !errors.Is(err, ErrForeignHost) {
			t.Errorf("bound to %s: %v, want ErrForeignHost", api, err)
		}
	}
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Client(nil, u, nil).Get(srv.URL + "/x") // control
	if err != nil || hits != 1 {
		t.Fatalf("%d requests arrived, %v", hits, err)
	}
	resp.Body.Close()
}
