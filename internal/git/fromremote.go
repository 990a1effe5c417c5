package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// RemoteOptions say what OpenRemote fills a store from.
type RemoteOptions struct {
	Remote Remote
	// Refs are full names on the remote. Each is fetched with its history under its own name; those that
	// the remote lacks are left out: ask [Store.Ref] what came.
	Refs []string
	// Base is the full id of a commit that one of Refs reaches.
	Base string
	// Checkout is a repository whose objects are borrowed, so that they are not fetched again. Empty, or
	// with a history that is not whole: nothing is borrowed.
	Checkout string
	Dir      string // where the store is made; must not exist or be empty
}

// OpenRemote makes a store without the job's checkout: what it holds came from the remote. Failures of the
// remote are *RemoteError; a base that no ref reaches is a *MissingObjectError.
func (g *Git) OpenRemote(ctx context.Context, opts RemoteOptions) (_ *Store, err error) {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	from := &checkout{fmt: sha1Format()}
	if len(opts.Base) == sha256Format().size*2 {
		from.fmt = sha256Format()
	}
	if near := g.lender(ctx, opts.Checkout, from.fmt); near != nil {
		from = near
	}
	if err := writeStore(dir, from); err != nil {
		return nil, fmt.Errorf("make store %s: %w", dir, err)
	}
	s := g.newStore(dir, from)
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.fetchPresent(ctx, opts.Remote, opts.Refs); err != nil {
		return nil, err
	}
	s.advice = "no branch that was fetched holds it: it was rewritten or deleted on the forge"
	if err := s.setBase(ctx, from, opts.Base); err != nil {
		return nil, err
	}
	return s, nil
}

// lender is a checkout whose objects can stand in for a fetch, nil when there is none. One with gaps would
// make the fetch believe that the store has what it lacks.
func (g *Git) lender(ctx context.Context, dir string, want format) *checkout {
	if dir == "" {
		return nil
	}
	c, err := g.readCheckout(ctx, dir)
	if err != nil || c.shallow != "" || c.partial || c.fmt.name != want.name {
		return nil
	}
	return c
}

func (s *Store) fetchPresent(ctx context.Context, remote Remote, refs []string) error {
	there, err := s.LsRemote(ctx, remote, refs...)
	if err != nil {
		return err
	}
	var specs []string
	for _, name := range refs {
		if _, ok := there[name]; ok {
			specs = append(specs, name+":"+name)
		}
	}
	if len(specs) == 0 {
		return errors.New("the remote has none of the branches that were asked for")
	}
	return s.Fetch(ctx, remote, specs...)
}
