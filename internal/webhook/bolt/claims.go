package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// claims is one transaction's view of the three buckets of the claim store.
type claims struct {
	byID, keys, due *bbolt.Bucket
	now             time.Time
}

func (f *File) claims(tx *bbolt.Tx) claims {
	return claims{tx.Bucket(bucketClaims), tx.Bucket(bucketKeys), tx.Bucket(bucketDue), f.now()}
}

// Find implements webhook.Store.
func (f *File) Find(_ context.Context, keys []string) (out webhook.Claim, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		s := f.claims(tx)
		for _, k := range keys {
			c, err := s.holder(k)
			if err != nil {
				return err
			}
			if c != nil && !s.lapsed(c) {
				out = *c
				return nil
			}
		}
		return webhook.ErrNoClaim
	})
	return out, err
}

// Claim implements webhook.Store.
func (f *File) Claim(_ context.Context, c webhook.Claim, lease time.Duration) (out webhook.Claim, err error) {
	err = f.db.Batch(func(tx *bbolt.Tx) error {
		out, err = f.claims(tx).take(c, lease)
		return err
	})
	return out, err
}

func (s claims) take(c webhook.Claim, lease time.Duration) (webhook.Claim, error) {
	c.Attempt, c.Created = 1, s.now
	var lapsed []*webhook.Claim
	for _, k := range append([]string{c.ID}, c.Keys...) {
		h, err := s.holder(k)
		switch {
		case err != nil:
			return webhook.Claim{}, err
		case h == nil:
			continue
		case !s.lapsed(h):
			return *h, webhook.ErrTaken
		case h.ID == c.ID:
			c.Attempt, c.Created = h.Attempt+1, h.Created
		}
		lapsed = append(lapsed, h)
	}
	if h, err := s.turn(c); h != nil || err != nil {
		return *cmp.Or(h, &webhook.Claim{}), cmp.Or(err, webhook.ErrTaken)
	}
	for _, h := range lapsed {
		if err := s.forget(h); err != nil {
			return webhook.Claim{}, err
		}
	}
	c.State, c.Expires = webhook.Claimed, s.now.Add(lease)
	for _, k := range c.Held() {
		if err := s.keys.Put([]byte(k), []byte(c.ID)); err != nil {
			return webhook.Claim{}, err
		}
	}
	return c, s.put(&c)
}

// Mark implements webhook.Store.
func (f *File) Mark(_ context.Context, id string, attempt int, to webhook.State, lease time.Duration) error {
	return f.db.Batch(func(tx *bbolt.Tx) error {
		s := f.claims(tx)
		c, err := s.get(id)
		switch {
		case err != nil:
			return err
		case c == nil || attempt != 0 && attempt != c.Attempt:
			return webhook.ErrLost
		case c.State >= to:
			return nil
		}
		if err := s.due.Delete(dueKey(c)); err != nil {
			return err
		}
		c.State, c.Expires = to, s.now.Add(lease)
		return s.put(c)
	})
}

// Release implements webhook.Store.
func (f *File) Release(_ context.Context, id string, attempt int, in webhook.State) error {
	return f.db.Batch(func(tx *bbolt.Tx) error {
		s := f.claims(tx)
		c, err := s.get(id)
		if err != nil {
			return err
		}
		if c == nil || attempt != 0 && attempt != c.Attempt || c.State != in {
			return webhook.ErrLost
		}
		return s.forget(c)
	})
}

// Expired implements webhook.Store.
func (f *File) Expired(_ context.Context, limit int) (out []webhook.Claim, err error) {
	var unread int
	var last error
	err = f.db.View(func(tx *bbolt.Tx) error {
		s := f.claims(tx)
		cur := s.due.Cursor()
		for k, _ := cur.First(); k != nil && len(out) < limit; k, _ = cur.Next() {
			if len(k) < 8 {
				continue
			}
			if timeOf(k).After(s.now) {
				return nil
			}
			c, err := s.get(string(k[8:]))
			if err != nil {
				unread, last = unread+1, fmt.Errorf("claim %s: %w", k[8:], err)
				continue
			}
			if c != nil {
				out = append(out, *c)
			}
		}
		return nil
	})
	if err == nil && unread > 0 {
		err = fmt.Errorf("%d claims of the file cannot be read, the last of them: %w", unread, last)
	}
	return out, err
}

func (s claims) get(id string) (*webhook.Claim, error) {
	raw := s.byID.Get([]byte(id))
	if raw == nil {
		return nil, nil
	}
	var c webhook.Claim
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

func (s claims) holder(key string) (*webhook.Claim, error) {
	if c, err := s.get(key); c != nil || err != nil {
		return c, err
	}
	if id := s.keys.Get([]byte(key)); id != nil {
		return s.get(string(id))
	}
	return nil, nil
}

// turn gives the claim that keeps c's turn from it, nil when none does.
func (s claims) turn(c webhook.Claim) (*webhook.Claim, error) {
	id := s.keys.Get([]byte(c.Turn))
	if c.Turn == "" || id == nil {
		return nil, nil
	}
	h, err := s.get(string(id))
	if err != nil || h == nil || h.ID == c.ID || h.State == webhook.Ended {
		return nil, err
	}
	return h, nil
}

func (s claims) lapsed(c *webhook.Claim) bool {
	return c.State == webhook.Claimed && !s.now.Before(c.Expires)
}

func (s claims) put(c *webhook.Claim) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := s.byID.Put([]byte(c.ID), raw); err != nil {
		return err
	}
	return s.due.Put(dueKey(c), nil)
}

func (s claims) forget(c *webhook.Claim) error {
	for _, k := range c.Held() {
		if string(s.keys.Get([]byte(k))) != c.ID {
			continue
		}
		if err := s.keys.Delete([]byte(k)); err != nil {
			return err
		}
	}
	if err := s.due.Delete(dueKey(c)); err != nil {
		return err
	}
	return s.byID.Delete([]byte(c.ID))
}

func dueKey(c *webhook.Claim) []byte { return append(stamp(c.Expires), c.ID...) }

// stamp is a time as eight bytes that sort like it; nothing here is older than 1970.
func stamp(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(t.UnixNano(), 0)))
}

func timeOf(key []byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(key))) }
