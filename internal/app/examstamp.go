package app

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/proctor-ci/proctor/internal/gate"
)

// stamp is what shows that a file was touched: its inode, and the time of its last change, which no process can set.
type stamp struct {
	inode        uint64
	size         int64
	sec, nanosec int64
}

// examine runs a gate. While a held-out one runs, code of the candidate runs beside the exam and could rewrite it under a
// shell that reads as it goes, and put it back before anybody looks. So the files are stamped, and a pass over an exam that
// was touched is none. Whether its output may be shown has no say in this: `proctor verify` shows it.
func (s *session) examine(ctx context.Context, spec gate.Spec, at place) (gate.Result, error) {
	runner, where := s.outward(spec, at)
	if !at.proof || spec.Class != gate.Acceptance {
		return runner.Run(ctx, spec, where)
	}
	before, err := s.stampExam(at.Dir)
	if err != nil {
		return gate.Result{}, err
	}
	watch, err := watchExam(at.Dir, slices.Collect(maps.Keys(before)))
	if err != nil {
		return gate.Result{}, err
	}
	defer watch.close()
	r, err := runner.Run(ctx, spec, where)
	if err != nil || r.Status != gate.Passed {
		return r, err
	}
	const touched = "a held-out file was touched while the gate ran, so its answer proves nothing"
	if moved, err := watch.moved(); err != nil {
		return r, err
	} else if moved {
		r.Status, r.Detail = gate.Failed, touched
		return r, nil
	}
	for path, was := range before {
		if now, err := stampOf(filepath.Join(at.Dir, path)); err != nil || now != was {
			r.Status, r.Detail = gate.Failed, touched
			break
		}
	}
	return r, nil
}

// stampExam stamps every held-out file that lies in a checkout; where nothing is held out there is none.
func (s *session) stampExam(dir string) (map[string]stamp, error) {
	sealed, err := s.sealed()
	if err != nil {
		return nil, usage(err)
	}
	if sealed == nil && len(s.heldFiles) == 0 {
		return nil, nil
	}
	stamps := map[string]stamp{}
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if _, laid := s.heldFiles[path]; !laid && (sealed == nil || !sealed(path)) {
			return nil
		}
		stamps[path], err = stampOf(file)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at the held-out files before their gate: %w", err)
	}
	return stamps, nil
}

func stampOf(file string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(file, &st); err != nil {
		return stamp{}, &fs.PathError{Op: "lstat", Path: file, Err: err}
	}
	sec, nanosec := st.Ctim.Unix()
	return stamp{inode: st.Ino, size: st.Size, sec: sec, nanosec: nanosec}, nil
}
