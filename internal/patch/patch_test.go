package patch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-ci/proctor/internal/git"
	"github.com/proctor-ci/proctor/internal/patch"
)

// blobs are contents by their id.
type blobs map[git.ID]string

func (b blobs) Size(_ context.Context, id git.ID) (int64, error) {
	s, ok := b[id]
	if !ok {
		return 0, fmt.Errorf("object %s: %w", id, fs.ErrNotExist)
	}
	return int64(len(s)), nil
}

func (b blobs) ReadBlob(_ context.Context, id git.ID, max int64) ([]byte, error) {
	if int64(len(b[id])) > max {
		return nil, errors.New("too long to be read")
	}
	return []byte(b[id]), nil
}

func file(path, before, after string, o patch.Options) (patch.File, error) {
	c := git.Change{Path: path, Old: git.Entry{Mode: git.ModeFile, ID: "1"}, New: git.Entry{Mode: git.ModeFile, ID: "2"}}
	return patch.Read(context.Background(), c, blobs{"1": before, "2": after}, o)
}

func TestAChangeIsReadAsItIs(t *testing.T) {
	t.Parallel()
	o := patch.Options{Around: 1, Max: 100}
	long := strings.Repeat("x\n", 100)
	for _, c := range []struct {
		name, path, before, after string
		want                      patch.File
	}{
		{"text", "a.go", "a\nb\nc\nd", "a\nB\nc\nd", patch.File{OldSize: 7, NewSize: 7, Text: patch.Text{Added: 1, Removed: 1, Hunks: []patch.Hunk{
			{1, 3, 1, 3, []patch.Line{{' ', "a", false}, {'-', "b", false}, {'+', "B", false}, {' ', "c", false}}}}}}},
		{"two places", "a", "1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n6", patch.File{OldSize: 10, NewSize: 13, Text: patch.Text{Added: 2, Removed: 1, Hunks: []patch.Hunk{
			{1, 2, 1, 2, []patch.Line{{'-', "1", false}, {'+', "one", false}, {' ', "2", false}}},
			{5, 1, 5, 2, []patch.Line{{' ', "5", false}, {'+', "6", true}}}}}}},
		{"a NUL hides no source", "a.sh", "", "a\x00b", patch.File{NewSize: 3, Text: patch.Text{Added: 1, Hunks: []patch.Hunk{{1, 0, 1, 1, []patch.Line{{'+', "a\x00b", true}}}}}}},
		{"line ends", "a.txt", "a\nb\n", "a\r\nb\r\n", patch.File{OldSize: 4, NewSize: 6, Text: patch.Text{Ends: "line ends: 0 of 2 lines ended in CR LF before, 2 of 2 after; they are not shown below"}}},
		{"binary", "a.png", "\x89\x00\x01", "\x89\x00\x02\x03", patch.File{OldSize: 3, NewSize: 4, Binary: true}},
		{"a long source file is no binary", "a.go", "\x7fELF", long, patch.File{OldSize: 4, NewSize: 200, Long: true}},
		{"a long file of another kind is", "a.dat", "x", long, patch.File{OldSize: 1, NewSize: 200, Long: true, Binary: true}},
	} {
		got, err := file(c.path, c.before, c.after, o)
		got.Change = git.Change{}
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", c.name, err, d)
		}
	}
	c := git.Change{Path: "gone", Old: git.Entry{Mode: git.ModeFile, ID: "none"}}
	if _, err := patch.Read(t.Context(), c, blobs{}, o); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a missing object: %v", err)
	}
	// What has no text is not looked for.
	for _, c := range []git.Change{
		{Path: "sub", New: git.Entry{Mode: git.ModeGitlink, ID: "none"}},
		{Path: "x", Old: git.Entry{Mode: git.ModeFile, ID: "none"}, New: git.Entry{Mode: git.ModeExecutable, ID: "none"}},
	} {
		if f, err := patch.Read(t.Context(), c, blobs{}, o); err != nil || f.Hunks != nil {
			t.Errorf("%s: %+v, %v", c.Path, f, err)
		}
	}
}

func TestWhatIsMaskedIsComparedBefore(t *testing.T) {
	t.Parallel()
	o := patch.Options{Max: 100, Mask: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret"), []byte("…")) }}
	got, err := file("a", "k=secret1\n", "k=secret2\n", o)
	if err != nil || len(got.Hunks) != 1 || got.Hunks[0].Lines[0].Text != "k=…1" || got.Hunks[0].Lines[1].Text != "k=…2" {
		t.Errorf("%+v, %v", got, err)
	}
	// A mask that moves lines would name the wrong ones: nothing of them is shown then.
	o.Mask = func([]byte) []byte { return []byte("secret\n\n\n") }
	got, err = file("a", "secret\n", "other\n", o)
	if err != nil || len(got.Hunks) != 1 || got.Hunks[0].Lines[0].Text != "" || got.Hunks[0].Lines[1].Text != "" {
		t.Errorf("%+v, %v", got, err)
	}
}
