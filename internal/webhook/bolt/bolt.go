// Package bolt owns the one file in which a webhook that runs as a plain server keeps its claims, its queue and
// its counters. It must never be opened by two processes at once, nor hold a payload: ids and hashes only.
package bolt

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Names of the buckets. Times in keys are big-endian, so that a cursor meets the oldest first.
var (
	bucketClaims = []byte("claims") // id → claim
	bucketKeys   = []byte("keys")   // key → id of the claim that holds it
	bucketDue    = []byte("due")    // end of the lease, id → nothing
	bucketQueue  = []byte("queue")  // time from which it may be taken, serial → message
	bucketAside  = []byte("aside")  // serial → message that nobody works on by itself again
	bucketCounts = []byte("counts") // counter → end, amount
)

// File is the open database. It is safe for concurrent use; each change is on the disk when its call returns.
type File struct {
	db   *bbolt.DB
	now  func() time.Time
	wake chan struct{}

	queued atomic.Int64 // messages; counting them anew reads every page
}

// lockTime is how long Open waits for another process to let the file go.
const lockTime = 2 * time.Second

// groupDelay gathers the changes of concurrent deliveries into one write to the disk.
const groupDelay = 2 * time.Millisecond

// Open makes the file where there is none. It takes its time from now.
func Open(path string, now func() time.Time) (*File, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTime, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("open %s: another webhook has it open: stop that one, or give this one a file of its own", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w: it has to be a file of the webhook's own in a directory it may write to", path, err)
	}
	db.MaxBatchDelay = groupDelay
	f := &File{db: db, now: now, wake: make(chan struct{}, 1)}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, b := range [][]byte{bucketClaims, bucketKeys, bucketDue, bucketQueue, bucketAside, bucketCounts} {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return f.recover(tx)
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("prepare %s: %w", path, err)
	}
	return f, nil
}

// Close waits for what is being written.
func (f *File) Close() error { return f.db.Close() }
