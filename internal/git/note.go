package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// maxNote bounds a note's content in bytes.
const maxNote = 1 << 20

// Note is a small file behind a ref of the remote, changed by compare-and-swap. The zero Note is a ref that does
// not exist.
type Note struct {
	ID      ID
	Content []byte
}

// ErrNoteChanged: somebody wrote the note since it was read.
var ErrNoteChanged = errors.New("the note was changed meanwhile")

// ReadNote fetches ref and reads file of it. A ref that does not exist is a zero Note.
func (s *Store) ReadNote(ctx context.Context, remote Remote, ref, file string) (Note, error) {
	err := s.bring(ctx, remote, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return Note{}, nil
	}
	if err != nil {
		return Note{}, fmt.Errorf("read %s: %w", ref, err)
	}
	id, err := s.Ref(ref)
	if err != nil {
		return Note{}, fmt.Errorf("read %s: %w", ref, err)
	}
	content, err := s.ReadFile(ctx, id, file, maxNote)
	if err != nil {
		return Note{}, fmt.Errorf("read %s at %s: %w: look at who wrote it, then delete the ref", ref, id, err)
	}
	return Note{id, content}, nil
}

// WriteNote replaces old, and nothing else: ErrNoteChanged when the ref is no longer at it. The note before is not
// kept.
func (s *Store) WriteNote(ctx context.Context, remote Remote, ref, file string, old Note, content []byte) (Note, error) {
	u, err := s.NoteUpdate(ref, file, old, content)
	if err != nil {
		return old, err
	}
	if err := NoteWritten(ref, s.Push(ctx, remote, []RefUpdate{u})); err != nil {
		return old, err
	}
	return Note{u.New, content}, nil
}

// NoteUpdate is WriteNote's push, for one that writes other refs as well. NoteWritten reads its error.
func (s *Store) NoteUpdate(ref, file string, old Note, content []byte) (RefUpdate, error) {
	if len(content) > maxNote {
		return RefUpdate{}, fmt.Errorf("write %s: %d bytes are more than %d", ref, len(content), maxNote)
	}
	id, err := s.writeNote(file, content, nil, "Note\n")
	if err != nil {
		return RefUpdate{}, fmt.Errorf("write %s: %w", ref, err)
	}
	return RefUpdate{Name: ref, New: id, Expect: old.ID}, nil
}

// NoteWritten says what a push's error means for the note at ref.
func NoteWritten(ref string, err error) error {
	switch {
	case rejected(err):
		return fmt.Errorf("%w (%s)", ErrNoteChanged, ref)
	case err != nil:
		return fmt.Errorf("write %s: %w", ref, err)
	}
	return nil
}
