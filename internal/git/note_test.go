package git

import (
	"errors"
	"testing"
)

func TestANoteIsChangedByCompareAndSwap(t *testing.T) {
	t.Parallel()
	f, sp, _ := candidate(t)
	const ref, file = "refs/proctor/spend", "day.json"
	none, err := sp.store.ReadNote(t.Context(), f.remote(), ref, file)
	if err != nil || none.ID != "" {
		t.Fatalf("no note yet: %+v %v", none, err)
	}
	first, err := sp.store.WriteNote(t.Context(), f.remote(), ref, file, none, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sp.store.WriteNote(t.Context(), f.remote(), ref, file, none, []byte("two")); !errors.Is(err, ErrNoteChanged) {
		t.Errorf("over a note that was not read: %v", err)
	}
	second, err := sp.store.WriteNote(t.Context(), f.remote(), ref, file, first, []byte("three"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := sp.store.ReadNote(t.Context(), f.remote(), ref, file)
	if err != nil || string(got.Content) != "three" || got.ID != second.ID {
		t.Errorf("%+v %v, want the last note", got, err)
	}
	if _, err := sp.store.WriteNote(t.Context(), f.remote(), ref, file, got, make([]byte, maxNote+1)); err == nil {
		t.Error("a note of any size was taken")
	}
}
