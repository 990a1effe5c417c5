// Package forgetest is a GitHub and a GitLab on loopback: the REST calls the program uses, git over
// smart HTTP by the real `git http-backend`, webhooks, and a runner that starts the real action. Tests use it, and
// so does `proctor demo`, so nothing here knows package testing and errors are for people.
//
// It stands for other machines, so it runs git on its own bare repositories; it must never be reachable from
// another host, and never decode anything with the client libraries it is there to check.
package forgetest

import "time"

// clockOr is the wall clock in whole seconds, as forges report time.
func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time { return now().UTC().Truncate(time.Second) }
}
