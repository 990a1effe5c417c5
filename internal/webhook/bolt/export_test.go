package bolt

import "go.etcd.io/bbolt"

// Fill makes the queue believe that it is full; Drain, that it is empty.
func Fill(f *File) { f.queued.Store(maxQueue) }

// Drain is Fill's opposite.
func Drain(f *File) { f.queued.Store(0) }

// Spoil makes a claim unreadable.
func Spoil(f *File, id string) error {
	return f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketClaims).Put([]byte(id), []byte("{")) })
}
