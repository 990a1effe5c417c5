package app

import (
	"strings"

	"github.com/proctor-ci/proctor/internal/telemetry"
)

// openTrace begins a trace where the job names a collector. Whatever is wrong with that is said, and ends nothing.
func (s *session) openTrace() {
	c, err := telemetry.FromEnvironment(s.env.Getenv)
	if err == nil {
		c.Version = version
		s.trace, err = telemetry.New(c, s.env.Random)
	}
	if err != nil {
		s.say("no trace is sent: " + err.Error())
	}
}

// traceSecrets are the values of the collector's headers that hold a secret, by the look of their names.
func traceSecrets(env Env) []string {
	c, err := telemetry.FromEnvironment(env.Getenv)
	if err != nil {
		return nil // nothing is sent either
	}
	var out []string
	for name, value := range c.Headers {
		if len(secretNames([]string{name + "="})) == 0 {
			continue
		}
		out = append(out, value)
		if _, token, ok := strings.Cut(value, " "); ok { // behind "Bearer" or "Basic"
			out = append(out, token)
		}
	}
	return out
}
