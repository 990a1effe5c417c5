package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// maxAside bounds what is kept: a fault that spoils every message must not fill the disk. The oldest goes.
const maxAside = 1000

// maxRaw is what is kept of an entry that cannot be read.
const maxRaw = 8 << 10

// SetAside is a message that nobody works on by itself again.
type SetAside struct {
	At       time.Time
	Why      string
	Attempts int              `json:",omitempty"`
	Message  *webhook.Message `json:",omitempty"` // nil where it could not be read
	Raw      []byte           `json:",omitempty"` // the entry itself where it could not be read, its first 8 kB
}

// Aside implements webhook.Source.
func (f *File) Aside(_ context.Context, t webhook.Taken, why string) error {
	var there bool
	err := f.db.Batch(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketQueue)
		if there = b.Get(t.Receipt) != nil; !there {
			return nil // somebody else has it since
		}
		if err := aside(tx, SetAside{At: f.now(), Why: why, Attempts: t.Attempts, Message: &t.Message}); err != nil {
			return err
		}
		return b.Delete(t.Receipt)
	})
	if err == nil && there {
		f.queued.Add(-1)
	}
	return err
}

// unreadable takes an entry out of the queue that no version of this program wrote, or a disk has spoilt.
func (f *File) unreadable(tx *bbolt.Tx, k, v []byte) error {
	err := aside(tx, SetAside{At: f.now(), Why: "it cannot be read", Raw: bytes.Clone(v[:min(len(v), maxRaw)])})
	if err != nil {
		return err
	}
	tx.OnCommit(func() { f.queued.Add(-1) })
	return tx.Bucket(bucketQueue).Delete(bytes.Clone(k))
}

func aside(tx *bbolt.Tx, s SetAside) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	b := tx.Bucket(bucketAside)
	n, err := b.NextSequence()
	if err != nil {
		return err
	}
	if n > maxAside {
		// Serials count up, so that this one is the oldest there may be.
		if err := b.Delete(serial(n - maxAside)); err != nil {
			return err
		}
	}
	return b.Put(serial(n), raw)
}

func serial(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Asides are all of them, the oldest first.
func (f *File) Asides() (out []SetAside, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAside).ForEach(func(k, v []byte) error {
			var s SetAside
			if err := json.Unmarshal(v, &s); err != nil {
				s = SetAside{Why: fmt.Sprintf("entry %x cannot be read", k), Raw: bytes.Clone(v)}
			}
			out = append(out, s)
			return nil
		})
	})
	return out, err
}

// Requeue puts back into the queue what can be read, as if it had just come. It gives how many those were.
func (f *File) Requeue() (n int, err error) {
	err = f.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketAside)
		type back struct {
			key []byte
			m   webhook.Message
		}
		var all []back
		err := b.ForEach(func(k, v []byte) error {
			var s SetAside
			if json.Unmarshal(v, &s) == nil && s.Message != nil {
				all = append(all, back{bytes.Clone(k), *s.Message})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, one := range all {
			if err := insert(tx.Bucket(bucketQueue), f.now(), entry{Message: one.m, Since: f.now()}); err != nil {
				return err
			}
			if err := b.Delete(one.key); err != nil {
				return err
			}
		}
		n = len(all)
		return nil
	})
	if err != nil {
		return 0, err
	}
	f.queued.Add(int64(n))
	f.nudge()
	return n, nil
}
