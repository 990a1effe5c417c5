package git

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"
)

const (
	leaseFile   = "lease.json"
	leaseFormat = "proctor-lease"
)

// leaseRecord is lease.json.
type leaseRecord struct {
	Format  string    `json:"format"`
	Holder  string    `json:"holder"`
	Expires time.Time `json:"expires"`
	// Stop says who asked the holder to stop, in a word that the asker chose; "" when nobody did.
	Stop string `json:"stop,omitempty"`
}

// Lease is a claim on an issue, held in a ref of the remote. Every change of it is a compare-and-swap,
// so two runs never both hold it. Its methods may be called from several goroutines.
type Lease struct {
	Ref    string
	Holder string // run id

	mu      sync.Mutex
	expires time.Time
	id      ID // what the ref points at
	stop    string
	store   *Store
	remote  Remote
}

// Expires is when another run may take the lease, as of the last renewal.
func (l *Lease) Expires() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expires
}

// claim is what the remote says.
type claim struct {
	holder  string
	expires time.Time
	stop    string
	id      ID
}

// HeldError says that another run holds the lease.
type HeldError struct {
	Ref, Holder string
	Expires     time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s works on this already (%s, until %s). Next: wait for it, or stop it first",
		e.Holder, e.Ref, e.Expires.UTC().Format(time.RFC3339))
}

// ErrLeaseLost: the lease expired and another run took it, or somebody changed the ref.
var ErrLeaseLost = errors.New("the lease was lost to another run: stop without pushing")

// Acquire claims ref for holder. It takes a free, released or expired lease and renews one of its own;
// a *HeldError names whoever holds it now. What lies at the ref and is no lease is an error, never overwritten. The refs beside are
// fetched with it, for the next LoadState or ReadNote of each: who got the lease knows that nobody had it in between.
func (s *Store) Acquire(ctx context.Context, remote Remote, ref, holder string, ttl time.Duration, beside ...string) (*Lease, error) {
	if holder == "" || ttl <= 0 {
		return nil, fmt.Errorf("acquire %s: a holder and a duration are needed", ref)
	}
	for attempt := 0; ; attempt++ {
		current, err := s.readLease(ctx, remote, ref, beside...)
		if err != nil {
			return nil, err
		}
		if current.holder != "" && current.holder != holder && s.git.now().Before(current.expires) {
			return nil, &HeldError{Ref: ref, Holder: current.holder, Expires: current.expires}
		}
		lease := &Lease{Ref: ref, Holder: holder, id: current.id, store: s, remote: remote}
		err = lease.set(ctx, s.git.now().Add(ttl))
		if err == nil {
			return lease, nil
		}
		// Somebody was faster: look who, once.
		if !errors.Is(err, ErrLeaseLost) || attempt > 0 {
			return nil, err
		}
	}
}

// readLease reads what is at the ref. A ref that does not exist is a zero claim.
func (s *Store) readLease(ctx context.Context, remote Remote, ref string, beside ...string) (claim, error) {
	if err := s.fetchBeside(ctx, remote, ref, beside); err != nil {
		return claim{}, fmt.Errorf("read lease: %w", err)
	}
	id, err := s.Ref(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return claim{}, nil
	}
	if err != nil {
		return claim{}, fmt.Errorf("read lease: %w", err)
	}
	content, err := s.ReadFile(ctx, id, leaseFile, 4096)
	if err == nil {
		var record leaseRecord
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		if err = decoder.Decode(&record); err == nil && record.Format == leaseFormat {
			return claim{record.Holder, record.Expires, record.Stop, id}, nil
		}
	}
	return claim{}, fmt.Errorf("read lease: %s at %s is no lease: look at who wrote it, then delete the ref", ref, id)
}

func (l *Lease) next(expires time.Time) (RefUpdate, error) {
	content, err := json.Marshal(leaseRecord{leaseFormat, l.Holder, expires.UTC(), l.stop})
	if err != nil {
		return RefUpdate{}, err
	}
	var parents []ID
	if l.id != "" {
		// The old claim as parent makes every claim a new commit, so that the swap can tell two equal ones apart.
		parents = []ID{l.id}
	}
	id, err := l.store.writeNote(leaseFile, append(content, '\n'), parents, "Lease\n")
	return RefUpdate{Name: l.Ref, New: id, Expect: l.id}, err
}

func (l *Lease) set(ctx context.Context, expires time.Time) error {
	_, err := l.setBeside(ctx, expires, nil)
	return err
}

func (l *Lease) setBeside(ctx context.Context, expires time.Time, beside []RefUpdate) (others []error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	update, err := l.next(expires)
	if err != nil {
		return slices.Repeat([]error{err}, len(beside)), fmt.Errorf("write lease: %w", err)
	}
	errs := l.store.PushEach(ctx, l.remote, append([]RefUpdate{update}, beside...)...)
	others, err = errs[1:], errs[0]
	switch {
	case rejected(err):
		return others, fmt.Errorf("%w (%s)", ErrLeaseLost, l.Ref)
	case err != nil:
		return others, fmt.Errorf("write lease: %w", err)
	}
	l.id, l.expires = update.New, expires
	return others, nil
}

// rejected says that a compare-and-swap found another commit than it expected.
func rejected(err error) bool {
	var failure *RemoteError
	return errors.As(err, &failure) && failure.Kind == Rejected
}

// Renew extends the lease; ErrLeaseLost when it is no longer ours, a *StopError when somebody asked its holder to
// stop. In the latter case it is extended all the same: what is worked on has to be saved.
func (l *Lease) Renew(ctx context.Context, ttl time.Duration) error {
	err := l.set(ctx, l.store.git.now().Add(ttl))
	if errors.Is(err, ErrLeaseLost) && l.stillOurs(ctx) {
		err = l.set(ctx, l.store.git.now().Add(ttl))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.stop != "" {
		return &StopError{Ref: l.Ref, By: l.stop}
	}
	return err
}

// Release lets the next run begin at once. The ref stays (nothing is ever deleted), expired.
func (l *Lease) Release(ctx context.Context) error {
	_, err := l.ReleaseBeside(ctx)
	return err
}

// ReleaseBeside is Release that writes other refs with the same push, each for itself. others are their errors, in order.
func (l *Lease) ReleaseBeside(ctx context.Context, beside ...RefUpdate) (others []error, err error) {
	others, err = l.setBeside(ctx, l.store.git.now(), beside)
	if errors.Is(err, ErrLeaseLost) && l.stillOurs(ctx) {
		err = l.set(ctx, l.store.git.now())
	}
	return others, err
}
