package git

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// A request to stop reaches the holder at its next renewal and takes nothing from it (INV-12).
func TestTheHolderOfALeaseHearsThatItShouldStop(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	const ref = "refs/proctor/7/lease"
	now := clock()
	var mu sync.Mutex
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	g, err := New(Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if err != nil {
		t.Fatal(err)
	}
	holder, asker := openStore(t, g, checkout, ""), openStore(t, g, checkout, "")
	nobody := func(when string) {
		t.Helper()
		if h, err := asker.Holder(t.Context(), f.remote(), ref); err != nil || h != (Holding{}) {
			t.Errorf("%s %+v holds it: %v", when, h, err)
		}
		if asked, err := asker.AskToStop(t.Context(), f.remote(), ref, "r1", "maya"); err != nil || asked {
			t.Errorf("%s a run was asked to stop: %v", when, err)
		}
	}
	nobody("before there is a lease")
	lease, err := holder.Acquire(t.Context(), f.remote(), ref, "r1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Renew(t.Context(), time.Hour); err != nil {
		t.Fatalf("the control, a renewal nobody interfered with: %v", err)
	}
	if asked, err := asker.AskToStop(t.Context(), f.remote(), ref, "another", "maya"); err != nil || asked {
		t.Errorf("a run that does not hold the lease was asked: %v", err)
	}
	for range 2 { // asking twice is asking once
		if asked, err := asker.AskToStop(t.Context(), f.remote(), ref, "r1", "maya"); err != nil || !asked {
			t.Fatalf("asked %v: %v", asked, err)
		}
	}
	if h, err := asker.Holder(t.Context(), f.remote(), ref); err != nil || h.Holder != "r1" || h.Stop != "maya" {
		t.Errorf("the lease is %+v: %v", h, err)
	}
	var stop *StopError
	for range 2 { // and the lease is still kept while the run saves
		if err := lease.Renew(t.Context(), time.Hour); !errors.As(err, &stop) || stop.By != "maya" {
			t.Fatalf("the holder hears %v", err)
		}
	}
	var held *HeldError
	if _, err := asker.Acquire(t.Context(), f.remote(), ref, "r2", time.Hour); !errors.As(err, &held) || held.Holder != "r1" {
		t.Errorf("a run that was asked to stop lost its lease: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	nobody("after its release")
	next, err := asker.Acquire(t.Context(), f.remote(), ref, "r2", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Renew(t.Context(), time.Minute); err != nil {
		t.Errorf("the next run hears of the old request: %v", err)
	}
	later(2 * time.Minute)
	nobody("after its end")
}

// A request that arrives between the last renewal and the release keeps nobody from going on.
func TestALateRequestToStopDoesNotKeepTheLease(t *testing.T) {
	t.Parallel()
	checkout := initRepo(t, sample())
	f := newForge(t, checkout)
	const ref = "refs/proctor/7/lease"
	g, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, g, checkout, "")
	lease, err := s.Acquire(t.Context(), f.remote(), ref, "r1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if asked, err := openStore(t, g, checkout, "").AskToStop(t.Context(), f.remote(), ref, "r1", "maya"); err != nil || !asked {
		t.Fatal(asked, err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), f.remote(), ref, "r2", time.Hour); err != nil {
		t.Errorf("the lease is still held: %v", err)
	}
}

// INV-12: what the remote took of ours, though we never heard so, is no loss: neither for a run that goes on nor for one that ends.
func TestALeaseWhoseWriteWasNeverHeardOfIsStillOurs(t *testing.T) {
	t.Parallel()
	f, sp, _ := candidate(t)
	s, ref := sp.store, "refs/proctor/7/lease"
	for name, end := range map[string]func(*Lease) error{
		"renewed":  func(l *Lease) error { return l.Renew(t.Context(), time.Hour) },
		"released": func(l *Lease) error { return l.Release(t.Context()) },
	} {
		l, err := s.Acquire(t.Context(), f.remote(), ref, "r1", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		unheard := &Lease{Ref: ref, Holder: "r1", id: l.id, store: s, remote: f.remote()}
		if err := unheard.Renew(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := end(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("%s, then released: %v", name, err)
		}
		next, err := s.Acquire(t.Context(), f.remote(), ref, "r2", time.Hour)
		if err != nil {
			t.Fatalf("%s: the next run: %v", name, err)
		}
		// The control: what another run holds is lost.
		if err := end(l); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s over another run's lease: %v", name, err)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
