package git

import (
	"context"
	"errors"
)

// Free says that nobody holds a lease now, without taking it; a *HeldError names who does. A job that may write nothing asks this way.
// The refs beside are fetched with it, as in Acquire.
func (s *Store) Free(ctx context.Context, remote Remote, ref string, beside ...string) error {
	current, err := s.readLease(ctx, remote, ref, beside...)
	if err != nil {
		return err
	}
	if current.holder != "" && s.git.now().Before(current.expires) {
		return &HeldError{Ref: ref, Holder: current.holder, Expires: current.expires}
	}
	return nil
}

// MayPush asks the remote whether the token could push at all, and pushes nothing: a forge answers that before it is told what. An answer
// that is neither yes nor no is an error.
func (s *Store) MayPush(ctx context.Context, remote Remote) (bool, error) {
	e, err := remote.endpoint()
	if err != nil {
		return false, err
	}
	c := s.remote(e, "push", "--dry-run", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no", "--", e.url, string(s.base)+":refs/proctor/may-push")
	err = classify("ask for the right to push", s.git.run(ctx, c), e)
	var remoteErr *RemoteError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &remoteErr) && (remoteErr.Kind == Forbidden || remoteErr.Kind == Auth):
		return false, nil
	case errors.As(err, &remoteErr) && remoteErr.Kind == Rejected: // somebody made that ref: the question was taken
		return true, nil
	}
	return false, err
}
