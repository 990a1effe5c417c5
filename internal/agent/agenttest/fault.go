package agenttest

import (
	"net/http"
)

// Fault is something that goes wrong instead of, or in, an answer.
type Fault struct {
	Status     int    // an error answer with this status: 401, 429, 529, …
	RetryAfter string // the header, with Status
	Message    string // of the error; empty: one that fits the status
	Redirect   string // answer with a redirect to this URL
	CutAfter   int    // end the connection after so many events of the stream
	HangUp     bool   // end the connection without a word
}

// kindOf tells the API's error type of a status, and a text that fits.
// https://docs.anthropic.com/en/api/errors
func kindOf(status int) (kind, message string) {
	switch status {
	case 400:
		return "invalid_request_error", "bad sample"
	case 401:
		return "authentication_error", "invalid x-api-key"
	case 402:
		return "billing_error", "Your payment method was declined"
	case 403:
		return "permission_error", "this key may not use this model"
	case 404:
		return "not_found_error", "no such model"
	case 429:
		return "rate_limit_error", "This request would exceed your rate limit"
	case 529:
		return "overloaded_error", "Overloaded"
	}
	return "api_error", "Internal server error"
}

// write acts the fault out where it takes the place of an answer.
func (f Fault) write(w http.ResponseWriter, a api) bool {
	switch {
	case f.HangUp:
		panic(http.ErrAbortHandler)
	case f.Redirect != "":
		w.Header().Set("Location", f.Redirect)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case f.Status != 0:
		kind, message := kindOf(f.Status)
		if f.Message != "" {
			message = f.Message
		}
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		a.fail(w, f.Status, kind, message)
	default:
		return false
	}
	return true
}
