// Package scaffold owns the files that `proctor init` puts into a repository. It must never overwrite one, nor
// follow a link out of the repository to write.
package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is one file as init would have it.
type File struct {
	Path string // from the root of the repository, with slashes
	Data []byte
	// Extend makes of a file that exists what it should become; nil where Data is all there is to say. ok is false where no
	// text can be proposed with certainty.
	Extend func(was []byte) (now []byte, ok bool)
	// Ask is what to do by hand where Extend is not ok.
	Ask string
}

// State is what became of a file.
type State string

// States of a file. Differs: it exists, is not what init would write, and was left alone.
const (
	Written State = "written"
	Same    State = "same"
	Differs State = "differs"
)

// Result is what became of one file. Diff is the change that init would have made, as a unified diff.
type Result struct {
	Path  string
	State State
	Diff  string
	Ask   string
}

// Apply writes the files that do not exist yet. What exists stays byte for byte as it is.
func Apply(top string, files []File) ([]Result, error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fmt.Errorf("open the repository: %w", err)
	}
	defer root.Close()
	var all []Result
	for _, f := range files {
		r, err := apply(root, f)
		if err != nil {
			return all, fmt.Errorf("write %s: %w. Next: make it a plain file in a folder that can be written", f.Path, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func apply(root *os.Root, f File) (Result, error) {
	r := Result{Path: f.Path, State: Written}
	name := filepath.FromSlash(f.Path)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return r, err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		was, err := root.ReadFile(name)
		if err != nil {
			return r, err
		}
		return f.compare(was), nil
	}
	if err != nil {
		return r, err
	}
	_, err = out.Write(f.Data)
	return r, errors.Join(err, out.Close())
}

// compare says what init would change in a file that exists.
func (f File) compare(was []byte) Result {
	now := f.Data
	if f.Extend != nil {
		var ok bool
		if now, ok = f.Extend(was); !ok {
			return Result{Path: f.Path, State: Differs, Ask: f.Ask}
		}
	}
	if bytes.Equal(was, now) {
		return Result{Path: f.Path, State: Same}
	}
	return Result{Path: f.Path, State: Differs, Diff: Diff(f.Path, was, now)}
}
