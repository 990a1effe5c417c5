package forgetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Fault is what goes wrong with a request.
type Fault struct {
	// After performs the request first: the change is made, its answer is lost or replaced.
	After bool
	// Drop closes the connection without an answer.
	Drop bool
	// Delay before anything else, or until the client gives up.
	Delay time.Duration
	// Status, Header and Body are the answer otherwise. Status 0 with no Drop passes the request on.
	Status int
	Header map[string]string
	Body   string
}

// LostAnswer makes the change and closes the connection.
func LostAnswer() Fault { return Fault{After: true, Drop: true} }

// LostCall closes the connection before anything happened.
func LostCall() Fault { return Fault{Drop: true} }

// BadGateway is a 502 before anything happened.
func BadGateway() Fault {
	return Fault{Status: http.StatusBadGateway, Body: `{"message":"Server Error"}`}
}

// DoneBut502 makes the change and answers 502.
func DoneBut502() Fault {
	f := BadGateway()
	f.After = true
	return f
}

// PrimaryLimit is an exhausted hourly limit that resets at reset.
func PrimaryLimit(reset time.Time) Fault {
	return Fault{Status: http.StatusForbidden, Header: map[string]string{
		"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Used": "5000",
		"X-RateLimit-Reset": fmt.Sprint(reset.Unix()), "X-RateLimit-Resource": "core",
	}, Body: `{"message":"API rate limit exceeded for installation ID 7.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`}
}

// SecondaryLimit is GitHub's answer to too much at once; retryAfter "" leaves the header out.
func SecondaryLimit(retryAfter string) Fault {
	f := Fault{Status: http.StatusForbidden, Header: map[string]string{},
		Body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}
	if retryAfter != "" {
		f.Header["Retry-After"] = retryAfter
	}
	return f
}

// Refusal is an error answer with a message.
func Refusal(status int, message string) Fault {
	return Fault{Status: status, Body: fmt.Sprintf(`{"message":%q,"documentation_url":"https://docs.github.com/rest"}`, message)}
}

type armed struct {
	match string
	left  int
	fault Fault
}

// faults holds what was armed, first come first served.
type faults struct {
	mu    sync.Mutex
	armed []*armed
}

func (f *faults) add(match string, times int, fault Fault) error {
	if !doublestar.ValidatePattern(match) {
		return fmt.Errorf("fault pattern %q: want METHOD /path with * for one segment, ** for any", match)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, &armed{match, times, fault})
	return nil
}

// take uses up one fault for the request, if one fits.
func (f *faults) take(method, path string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		if a.left == 0 {
			continue
		}
		if doublestar.MatchUnvalidated(a.match, method+" "+path) {
			if a.left > 0 {
				a.left--
			}
			return &a.fault
		}
	}
	return nil
}

// unused names the faults that never happened: a test that arms one and does not meet it proves nothing.
func (f *faults) unused() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, a := range f.armed {
		if a.left > 0 {
			out = append(out, fmt.Sprintf("%s: %d left", a.match, a.left))
		}
	}
	return out
}

// around runs next with the request's fault, if it has one.
func (f *faults) around(w http.ResponseWriter, r *http.Request, path string, next http.HandlerFunc) {
	fault := f.take(r.Method, path)
	if fault == nil {
		next(w, r)
		return
	}
	if fault.Delay > 0 {
		t := time.NewTimer(fault.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return
		}
	}
	if fault.After {
		next(newBuffered(), r)
	}
	switch {
	case fault.Drop:
		// The body must be read first, or the client sees a reset while it is still writing.
		io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	case fault.Status == 0:
		next(w, r)
	default:
		for k, v := range fault.Header {
			w.Header().Set(k, v)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(fault.Status)
		io.Copy(w, bytes.NewBufferString(fault.Body))
	}
}
