package agent

import (
	"strconv"
	"strings"
	"time"

	"github.com/proctor-ci/proctor/internal/pattern"
)

// Retry is what may be tried after an outcome. Whether it is, the loop decides.
type Retry string

// Advice after an outcome.
const (
	RetryNo    Retry = "no"
	RetryOnce  Retry = "once"  // a fault that may have been a chance
	RetrySoon  Retry = "soon"  // a throttle: bounded, with back-off or as told
	RetryAfter Retry = "after" // a quota: not before it resets
)

// Advice says what may be tried after an outcome.
func (o Outcome) Advice() Retry {
	switch {
	case o.Lasting:
		return RetryNo
	case o.Kind == LimitRate:
		return RetrySoon
	case o.Kind == LimitUsage:
		return RetryAfter
	case o.Kind == AgentError, o.Kind == Incomplete:
		return RetryOnce
	}
	return RetryNo
}

// verdict is how a failure is classified.
type verdict struct {
	kind    Kind
	lasting bool
	resetAt time.Time
}

// byStatus classifies a failure by the HTTP status that the agent reports. quota says that the agent
// told, in structure, that an allowance is used up.
func byStatus(status int64, quota bool, text string) (verdict, bool) {
	switch {
	case status == 401 || status == 403:
		return verdict{kind: Auth}, true
	case status == 402:
		if ofMeter(text) {
			return verdict{kind: LimitBudget}, true
		}
		return verdict{kind: LimitUsage, lasting: true}, true
	case status == 429:
		if v, ok := quotaWords(text); ok || quota {
			v.kind = LimitUsage
			return v, true
		}
		return verdict{kind: LimitRate}, true
	case status == 408 || status >= 500 && status < 600:
		return verdict{kind: LimitRate}, true
	case status >= 400 && status < 500:
		return verdict{kind: AgentError, lasting: true}, true
	}
	return verdict{}, false
}

// byWords classifies a failure by its text, when the structure has said that it is one and no more.
func byWords(text string) verdict {
	low := strings.ToLower(text)
	switch {
	case ofMeter(low) && strings.Contains(low, "no known price"):
		return verdict{kind: AgentError, lasting: true} // it speaks of budgets, and none is spent
	case ofMeter(low) && strings.Contains(low, "budget"):
		return verdict{kind: LimitBudget}
	}
	if v, ok := quotaWords(text); ok {
		return v
	}
	if m := statusInText.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64) // three digits
		if v, ok := byStatus(n, false, text); ok {
			return v
		}
	}
	for _, w := range words {
		if strings.Contains(low, w.text) {
			return w.verdict
		}
	}
	return verdict{kind: AgentError}
}

// statusInText finds a status where the CLIs print one: "API Error: 400", "unexpected status 401",
// "last status: 429", "Request rejected (429)".
var statusInText = pattern.Of(`(?i)(?:API error:?|status:?|rejected)\s+\(?([45]\d\d)\b`)

var words = []struct {
	text string
	verdict
}{
	{"invalid api key", verdict{kind: Auth}},
	{"please run /login", verdict{kind: Auth}},
	{"authentication_error", verdict{kind: Auth}},
	{"failed to authenticate", verdict{kind: Auth}},
	{"oauth token has expired", verdict{kind: Auth}},
	{"not logged in", verdict{kind: Auth}},
	{"token budget exceeded", verdict{kind: LimitBudget}},
	{"maximum budget", verdict{kind: LimitBudget}},
	{"too many requests", verdict{kind: LimitRate}},
	{"rate limit", verdict{kind: LimitRate}},
	{"overloaded", verdict{kind: LimitRate}},
	{"experiencing high demand", verdict{kind: LimitRate}},
	{"invalid_request_error", verdict{kind: AgentError, lasting: true}},
}

var (
	limitReached = pattern.Of(`(?i)\b(usage|session|weekly|daily|monthly|5-hour|opus|sonnet) limit\b|\blimit reached\b`)
	epochBehind  = pattern.Of(`\|(\d{9,11})\b`)
)

// quotaWords finds the texts of a used-up allowance. A reset is taken from an exact instant only; a
// clock time without a zone is left to the reader of the text.
func quotaWords(text string) (verdict, bool) {
	low := strings.ToLower(text)
	for _, bill := range []string{"credit balance is too low", "quota exceeded. check your plan", "exceeded your current quota", "insufficient_quota"} {
		if strings.Contains(low, bill) {
			return verdict{kind: LimitUsage, lasting: true}, true
		}
	}
	if !limitReached.MatchString(text) {
		return verdict{}, false
	}
	v := verdict{kind: LimitUsage}
	if m := epochBehind.FindStringSubmatch(text); m != nil {
		v.resetAt = epoch(m[1])
	}
	return v, true
}

func epoch(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > 1<<36 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// ofMeter says that an error text was written by the run's own meter, which marks its messages.
func ofMeter(text string) bool { return strings.Contains(text, "proctor: ") }

// next says what a person does about an outcome that stops a run.
func next(k Kind, agent string) string {
	switch k {
	case Auth:
		return "check the model key or login that the job gives to " + agent + ", and that it may use the model"
	case LimitUsage:
		return "wait for the allowance to reset, or give the job a key of another plan, then run again"
	case LimitRate:
		return "run again later; the provider was throttling or overloaded"
	case LimitBudget:
		return "raise stops.max_cost_usd and resume; the work so far is kept"
	case RefusedStart:
		return "run `proctor doctor`, which names what " + agent + " needs here"
	}
	return ""
}
