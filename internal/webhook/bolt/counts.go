package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"
)

// prunes bounds what one count clears away.
const prunes = 16

// Count implements webhook.Store. Ends stand in front of names, so that a cursor meets first what is over.
func (f *File) Count(_ context.Context, name string, end time.Time) (n int, err error) {
	err = f.db.Batch(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketCounts)
		var over [][]byte
		cur := b.Cursor()
		for k, _ := cur.First(); k != nil && len(over) < prunes && (len(k) < 8 || !timeOf(k).After(f.now())); k, _ = cur.Next() {
			over = append(over, bytes.Clone(k))
		}
		for _, k := range over {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		key := append(stamp(end), name...)
		n = 1
		if v := b.Get(key); len(v) == 8 {
			n += int(binary.BigEndian.Uint64(v))
		}
		return b.Put(key, binary.BigEndian.AppendUint64(nil, uint64(n)))
	})
	return n, err
}
