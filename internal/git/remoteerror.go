package git

import (
	"errors"
	"io/fs"
	"strings"
)

// RemoteKind is why a push, fetch or listing failed: what a caller decides on.
type RemoteKind string

// Kinds of failure.
const (
	Refused     RemoteKind = "refused"     // by our own rules; nothing was sent
	Rejected    RemoteKind = "rejected"    // the ref is not what was expected, or somebody else was faster
	Auth        RemoteKind = "auth"        // the token was not accepted
	Forbidden   RemoteKind = "forbidden"   // the token may not do this
	Protected   RemoteKind = "protected"   // a branch or ruleset forbids it
	Workflows   RemoteKind = "workflows"   // the change touches workflows and the token may not
	TooBig      RemoteKind = "too-large"   // a file or the pack is over the forge's limit
	Hook        RemoteKind = "hook"        // a hook of the remote declined
	NotFound    RemoteKind = "not-found"   // no such repository, or none that the token can see
	NoRef       RemoteKind = "no-ref"      // the remote has no such ref
	Redirected  RemoteKind = "redirected"  // the repository moved; the token is not sent elsewhere
	Unreachable RemoteKind = "unreachable" // no connection, time-out, 5xx
	Unknown     RemoteKind = "unknown"
)

// RemoteError is a failed exchange with a remote.
type RemoteError struct {
	Op   string // "push", "fetch from …"
	Kind RemoteKind
	Ref  string // the ref that was refused, when known
	Said string // the remote's or git's words: redacted, one line, at most 500 bytes
	Next string // what a person does now, whatever the forge; forge.PushExplainer knows what to click
	// Output is all that git and the remote printed: redacted, line by line, its last 8 KiB. Empty when
	// nothing was sent.
	Output string
	err    error
}

// PushError is the name by which callers of Push know it.
type PushError = RemoteError

func (e *RemoteError) Error() string {
	s := e.Op
	if e.Ref != "" {
		s += " " + e.Ref
	}
	s += ": " + string(e.Kind)
	if e.Said != "" {
		s += ": " + e.Said
	}
	if e.Next != "" {
		s += ". Next: " + e.Next
	}
	return s
}

func (e *RemoteError) Unwrap() error { return e.err }

// Is makes a missing ref an fs.ErrNotExist.
func (e *RemoteError) Is(target error) bool { return e.Kind == NoRef && target == fs.ErrNotExist }

// Retryable reports whether the same call may succeed a little later.
func (e *RemoteError) Retryable() bool { return e.Kind == Unreachable }

// symptoms are looked for in this order in what git and the forges print with LC_ALL=C; the first hit
// decides. Sources: git's http.c, remote-curl.c and send-pack.c; GitHub's GH001–GH013 messages and
// "Troubleshooting" pages; GitLab's gitaly and pre-receive messages.
var symptoms = []struct {
	kind  RemoteKind
	words []string
	next  string
}{
	{Workflows, []string{"without `workflows` permission", "without `workflow` scope", "refusing to allow a github app to create or update workflow", "refusing to allow an oauth app to create or update workflow", "refusing to allow a personal access token to create or update workflow"},
		"give the App or token the workflows permission, or keep workflow files out of the change"},
	{TooBig, []string{"gh001", "exceeds github's file size limit", "large files detected", "http 413", "returned error: 413", "exceeds the maximum file size", "file size limit", "maximum size of a push", "exceeded the limit"},
		"remove the large file from the change, or lower policy.max.file_bytes so that it is caught earlier"},
	{Protected, []string{"gh006", "gh013", "protected branch", "protected branches", "repository rule violations", "cannot force push to this branch"},
		"let the token push to the run's branch: leave proctor/** out of the branch protection or ruleset"},
	{NoRef, []string{"couldn't find remote ref", "no such remote ref"}, ""},
	{Redirected, []string{"unable to update url base from redirection", "returned error: 301", "returned error: 302", "returned error: 303", "returned error: 307", "returned error: 308"},
		"the repository moved or was renamed: configure its present URL"},
	{Auth, []string{"authentication failed", "returned error: 401", "could not read username", "could not read password", "terminal prompts disabled", "invalid username or", "bad credentials", "access denied"},
		"check that the token is valid and not expired, and that it belongs to this forge"},
	{NotFound, []string{"repository not found", "returned error: 404", "' not found", "does not appear to be a git repository", "does not exist", "project you were looking for could not be found"},
		"check that the repository exists and that the token can see it"},
	{Forbidden, []string{"returned error: 403", "write access to repository not granted", "permission to", "you are not allowed to", "denied to", "read-only", "service not enabled"},
		"give the job's token contents: write (GitLab: write_repository and the Developer role)"},
	{Rejected, []string{"stale info", "non-fast-forward", "fetch first", "cannot lock ref", "failed to lock", "incorrect old value", "reference already exists", "failed to update ref", "[rejected]", "atomic push failed", "failed to push some refs: atomic", "remote ref updated since checkout"},
		"somebody else moved the ref: fetch it and decide again; nothing was overwritten"},
	{Hook, []string{"hook declined", "pre-receive", "push declined"},
		"the remote's hook refused the commit: read its message"},
	{Unreachable, []string{"could not resolve", "failed to connect", "couldn't connect", "connection refused", "connection reset", "timed out", "timeout", "hung up unexpectedly", "returned error: 5", "early eof", "empty reply", "network is unreachable", "no route to host", "unexpected disconnect", "rpc failed", "ssl", "certificate", "unable to access"},
		"check the network, the proxy and the forge's status, then run again; the work is kept"},
}

// classify turns a failed process into a *RemoteError; a cancelled one stays what it is.
func classify(op string, err error, e endpoint) error {
	var exit *ExitError
	if !errors.As(err, &exit) {
		return err
	}
	return classifyText(op, "", redact(exit.Stderr, e.secrets), err)
}

func classifyText(op, ref, text string, err error) *RemoteError {
	failure := &RemoteError{Op: op, Ref: ref, Kind: Unknown, Said: summary(text), Output: text, err: err}
	lower := strings.ToLower(text)
	for _, s := range symptoms {
		for _, word := range s.words {
			if strings.Contains(lower, word) {
				failure.Kind, failure.Next = s.kind, s.next
				return failure
			}
		}
	}
	failure.Next = "read what git said; the commit is kept in the run's store"
	return failure
}

// classifyPush reads the per-ref report too: "!\tfrom:to\t[rejected] (stale info)".
func classifyPush(remote Remote, updates []RefUpdate, report string, err error, e endpoint) error {
	var exit *ExitError
	if !errors.As(err, &exit) {
		return err
	}
	op := "push to " + remote.host()
	ref, reasons := "", ""
	for line := range strings.Lines(report) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) < 3 || fields[0] != "!" {
			continue
		}
		_, to, _ := strings.Cut(fields[1], ":")
		reasons += fields[2] + "\n"
		// With --atomic the innocent refs are reported as well.
		if ref == "" || !strings.Contains(fields[2], "atomic") {
			ref = to
		}
	}
	if ref == "" && len(updates) == 1 {
		ref = updates[0].Name
	}
	text := redact(reasons+exit.Stderr, e.secrets)
	if len(updates) == 1 {
		// What git prints beside the report may be about a ref that went out with this one.
		if own := classifyText(op, ref, redact(reasons, e.secrets), err); own.Kind == Rejected {
			own.Output = text
			return own
		}
	}
	return classifyText(op, ref, text, err)
}

// summary keeps the lines that say why, on one line.
func summary(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(line, "remote:"))
		if line == "" || strings.HasPrefix(line, "hint:") || strings.HasPrefix(line, "To ") || strings.HasPrefix(line, "Done") {
			continue
		}
		kept = append(kept, line)
	}
	return oneLine(strings.Join(kept, "; "), 500)
}
