package webhook

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is a Store for one process. It forgets everything at a restart: a delivery that comes again
// after one is then dispatched again, and the run recognises it by its id.
type Memory struct {
	now func() time.Time

	mu     sync.Mutex
	claims map[string]*Claim // by id
	keys   map[string]string // key → id
	counts map[string]tally
}

// tally is a counter until its end.
type tally struct {
	end time.Time
	n   int
}

// NewMemory takes its time from now.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, claims: map[string]*Claim{}, keys: map[string]string{}, counts: map[string]tally{}}
}

// Find implements Store.
func (m *Memory) Find(_ context.Context, keys []string) (Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys {
		if c := m.holder(k); c != nil && !m.lapsed(c) {
			return copyOf(c), nil
		}
	}
	return Claim{}, ErrNoClaim
}

// Claim implements Store.
func (m *Memory) Claim(_ context.Context, c Claim, lease time.Duration) (Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	c.Attempt, c.Created = 1, now
	names := append([]string{c.ID}, c.Keys...)
	for _, k := range names {
		if h := m.holder(k); h != nil && !m.lapsed(h) {
			return copyOf(h), ErrTaken
		}
	}
	if h := m.claims[m.keys[c.Turn]]; h != nil && h.ID != c.ID && h.State != Ended {
		return copyOf(h), ErrTaken
	}
	for _, k := range names {
		h := m.holder(k)
		if h == nil {
			continue
		}
		if h.ID == c.ID {
			c.Attempt, c.Created = h.Attempt+1, h.Created
		}
		m.forget(h)
	}
	c.State, c.Expires = Claimed, now.Add(lease)
	stored := copyOf(&c)
	m.claims[c.ID] = &stored
	for _, k := range stored.Held() {
		m.keys[k] = c.ID
	}
	return c, nil
}

// Mark implements Store.
func (m *Memory) Mark(_ context.Context, id string, attempt int, to State, lease time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.claims[id]
	if c == nil || attempt != 0 && attempt != c.Attempt {
		return ErrLost
	}
	if c.State < to {
		c.State, c.Expires = to, m.now().Add(lease)
	}
	return nil
}

// Release implements Store.
func (m *Memory) Release(_ context.Context, id string, attempt int, in State) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.claims[id]
	if c == nil || attempt != 0 && attempt != c.Attempt || c.State != in {
		return ErrLost
	}
	m.forget(c)
	return nil
}

// Expired implements Store.
func (m *Memory) Expired(_ context.Context, limit int) ([]Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var out []Claim
	for _, c := range m.claims {
		if !now.Before(c.Expires) {
			out = append(out, copyOf(c))
		}
	}
	slices.SortFunc(out, func(a, b Claim) int { return a.Expires.Compare(b.Expires) })
	return out[:min(limit, len(out))], nil
}

// Count implements Store.
func (m *Memory) Count(_ context.Context, name string, end time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.counts[name]
	if !ok || !c.end.Equal(end) {
		// A new one is begun where old ones end: that is when they go.
		now := m.now()
		maps.DeleteFunc(m.counts, func(_ string, c tally) bool { return !now.Before(c.end) })
		c = tally{end: end}
	}
	c.n++
	m.counts[name] = c
	return c.n, nil
}

func (m *Memory) holder(key string) *Claim {
	if c := m.claims[key]; c != nil {
		return c
	}
	return m.claims[m.keys[key]]
}

// lapsed: whoever was dispatching is gone, and nobody knows how far it came.
func (m *Memory) lapsed(c *Claim) bool { return c.State == Claimed && !m.now().Before(c.Expires) }

func (m *Memory) forget(c *Claim) {
	for _, k := range c.Held() {
		if m.keys[k] == c.ID {
			delete(m.keys, k)
		}
	}
	delete(m.claims, c.ID)
}

func copyOf(c *Claim) Claim {
	out := *c
	out.Keys = slices.Clone(c.Keys)
	return out
}
