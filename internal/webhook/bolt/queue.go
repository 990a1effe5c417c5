package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/proctor-ci/proctor/internal/webhook"
)

// maxQueue bounds the file: each message takes about a kilobyte.
const maxQueue = 100_000

// ErrFull is a queue with no room. The delivery is then answered as failed, and the forge shows it as such.
var ErrFull = fmt.Errorf("the queue holds %d messages", maxQueue)

// entry is a message as the file keeps it. Its key is the time from which it may be taken and a serial number.
type entry struct {
	Message  webhook.Message
	Attempts int
	Since    time.Time
	Taken    bool
}

// Send implements webhook.Queue.
func (f *File) Send(_ context.Context, m webhook.Message) error {
	if f.queued.Add(1) > maxQueue {
		f.queued.Add(-1)
		return ErrFull
	}
	err := f.db.Batch(func(tx *bbolt.Tx) error {
		return insert(tx.Bucket(bucketQueue), f.now(), entry{Message: m, Since: f.now()})
	})
	if err != nil {
		f.queued.Add(-1)
		return err
	}
	f.nudge()
	return nil
}

func (f *File) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Wake implements webhook.Source.
func (f *File) Wake() <-chan struct{} { return f.wake }

// Take implements webhook.Source.
func (f *File) Take(_ context.Context, lease time.Duration) (out webhook.Taken, err error) {
	// Most looks find nothing, and a look costs no write.
	if err := f.db.View(func(tx *bbolt.Tx) error { return f.due(tx) }); err != nil {
		return out, err
	}
	var unread error
	err = f.db.Update(func(tx *bbolt.Tx) error {
		if err := f.due(tx); err != nil {
			return err
		}
		b := tx.Bucket(bucketQueue)
		k, v := b.Cursor().First()
		e, err := read(k, v)
		if err != nil {
			unread = fmt.Errorf("%w: entry %x of the file", webhook.ErrMessage, k)
			return f.unreadable(tx, k, v)
		}
		e.Attempts, e.Taken = e.Attempts+1, true
		receipt := moved(k, f.now().Add(lease))
		out = webhook.Taken{Message: e.Message, Receipt: receipt, Attempts: e.Attempts, Since: e.Since}
		return replace(b, k, receipt, e)
	})
	if err == nil {
		f.nudge() // another worker may find the next
	}
	return out, cmp.Or(err, unread)
}

// keyBytes is the length of a key: a time and a serial number.
const keyBytes = 16

func read(k, v []byte) (e entry, err error) {
	if len(k) != keyBytes {
		return e, fmt.Errorf("a key of %d bytes", len(k))
	}
	return e, json.Unmarshal(v, &e)
}

func (f *File) due(tx *bbolt.Tx) error {
	k, _ := tx.Bucket(bucketQueue).Cursor().First()
	if k == nil || len(k) == keyBytes && timeOf(k).After(f.now()) {
		return webhook.ErrEmpty
	}
	return nil
}

// Done implements webhook.Source.
func (f *File) Done(_ context.Context, t webhook.Taken) error {
	var there bool
	err := f.db.Batch(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketQueue)
		there = b.Get(t.Receipt) != nil
		return b.Delete(t.Receipt)
	})
	if err == nil && there {
		f.queued.Add(-1)
	}
	return err
}

// Later implements webhook.Source. A message that somebody else took meanwhile is left to them.
func (f *File) Later(_ context.Context, t webhook.Taken, d time.Duration) error {
	return f.db.Batch(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketQueue)
		if b.Get(t.Receipt) == nil {
			return nil
		}
		return replace(b, t.Receipt, moved(t.Receipt, f.now().Add(d)), entry{Message: t.Message, Attempts: t.Attempts, Since: t.Since})
	})
}

// recover makes due what a process that is gone had in hand: nobody else has the file open.
func (f *File) recover(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketQueue)
	type held struct {
		key []byte
		e   entry
	}
	var all []held
	err := b.ForEach(func(k, v []byte) error {
		f.queued.Add(1)
		// One that cannot be read is set aside, and told of, when its turn comes: it must not keep the others from being served.
		if e, err := read(k, v); err == nil && e.Taken {
			all = append(all, held{bytes.Clone(k), e})
		}
		return nil
	})
	for _, h := range all {
		h.e.Taken = false
		err = errors.Join(err, replace(b, h.key, moved(h.key, f.now()), h.e))
	}
	return err
}

func insert(b *bbolt.Bucket, at time.Time, e entry) error {
	n, err := b.NextSequence()
	if err != nil {
		return err
	}
	return replace(b, nil, binary.BigEndian.AppendUint64(stamp(at), n), e)
}

// moved is the key of a message under another time; the serial number stays.
func moved(key []byte, at time.Time) []byte { return append(stamp(at), key[8:]...) }

func replace(b *bbolt.Bucket, old, key []byte, e entry) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if old != nil {
		if err := b.Delete(old); err != nil {
			return err
		}
	}
	return b.Put(key, raw)
}
