package wire

import (
	"net/http"
	"strconv"
	"time"
)

// go-github remembers rate-limit headers and refuses later calls by the wall clock without sending
// them; go-gitlab sizes a limiter from them. Waiting is ours to decide, by an injected clock, so the
// transport renames the headers before the libraries look.
const (
	headerBody       = "Proctor-Error-Body"
	headerLimited    = "Proctor-Limited"
	headerRetryAfter = "Proctor-Retry-After"
	headerReset      = "Proctor-Ratelimit-Reset"
	headerRemaining  = "Proctor-Ratelimit-Remaining"
)

func hideHints(resp *http.Response) {
	h := resp.Header
	for from, to := range map[string]string{
		"Retry-After": headerRetryAfter, "X-Ratelimit-Reset": headerReset, "X-Ratelimit-Remaining": headerRemaining,
		"Ratelimit-Reset": headerReset, "Ratelimit-Remaining": headerRemaining,
	} {
		if v := h.Get(from); v != "" {
			h.Set(to, v)
		}
		h.Del(from)
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Used", "X-Ratelimit-Resource", "Ratelimit-Limit"} {
		h.Del(name)
	}
}

// Limited reports whether the answer is a rate limit, of either kind.
func Limited(resp *http.Response) bool {
	return resp != nil && resp.Header.Get(headerLimited) == "true"
}

// limitWait is how long a rate-limited answer asks us to wait: retry-after, then the reset time when
// nothing remains, else a minute that doubles. Source: GitHub's "Best practices for using the REST API".
func limitWait(resp *http.Response, now time.Time, attempt int) time.Duration {
	if d, ok := retryAfter(resp, now); ok {
		return d
	}
	if resp.Header.Get(headerRemaining) == "0" {
		if sec, err := strconv.ParseInt(resp.Header.Get(headerReset), 10, 64); err == nil {
			// One second on top: the server's clock and ours differ, and the limit resets at the end of it.
			return max(time.Unix(sec, 0).Sub(now), 0) + time.Second
		}
	}
	return time.Minute << min(attempt, 6)
}

// retryAfter reads seconds or an HTTP date.
func retryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	v := resp.Header.Get(headerRetryAfter)
	if v == "" {
		return 0, false
	}
	if sec, err := strconv.ParseInt(v, 10, 64); err == nil && sec >= 0 && sec < 1<<31 {
		return time.Duration(sec) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// ErrorText is the beginning of an error answer's body, whatever the client library did with it.
func ErrorText(resp *http.Response) string {
	if resp == nil {
		return ""
	}
	return resp.Header.Get(headerBody)
}
