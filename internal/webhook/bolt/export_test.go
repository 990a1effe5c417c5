package bolt

// Fill makes the queue believe that it is full; Drain, that it is empty.
func Fill(f *File) { f.queued.Store(maxQueue) }

// Drain is Fill's opposite.
func Drain(f *File) { f.queued.Store(0) }
