package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Files that lie together in a run's directory.
const (
	RecordFile = "proctor-run.json"
	EventsFile = "events.jsonl"
	ReportFile = "report.html"
	ChangeFile = "proctor-change.json"
)

// maxRecord bounds what Read takes into memory.
const maxRecord = 64 << 20

// Write redacts, checks and writes the record to RecordFile in dir, whole or not at all. It returns
// the record as written. A record that contradicts itself is written too, with a note that says so,
// and the error wraps ErrInvalid: an account with a stated flaw is worth more than none, but nobody
// may take it for a good one.
func Write(dir string, r Record, red *Redactor) (Record, error) {
	r = red.Record(normal(r))
	invalid := Validate(r)
	if invalid != nil {
		r.Notes = append(append([]string{}, r.Notes...), invalid.Error())
	}
	b, err := encodeRecord(r)
	if err != nil {
		return r, err
	}
	if err := WriteFile(filepath.Join(dir, RecordFile), b); err != nil {
		return r, err
	}
	return r, invalid
}

// encodeRecord is the record as its file has it.
func encodeRecord(r Record) ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode run record: %w", err)
	}
	return append(b, '\n'), nil
}

// Read reads a record from a file or from the RecordFile of a directory. A newer schema is refused
// by name. An error that wraps ErrInvalid comes with the record.
func Read(path string) (Record, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, RecordFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return Record{}, fmt.Errorf("read run record: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return Record{}, fmt.Errorf("read run record %s: %w", path, err)
	}
	if len(b) > maxRecord {
		return Record{}, fmt.Errorf("read run record %s: larger than %d MiB", path, maxRecord>>20)
	}
	r, err := Decode(b)
	if err != nil {
		return r, fmt.Errorf("read run record %s: %w", path, err)
	}
	return r, nil
}

// Decode is Read for bytes.
func Decode(b []byte) (Record, error) {
	var head struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return Record{}, fmt.Errorf("not a run record: %w", err)
	}
	switch {
	case head.Schema == nil:
		return Record{}, errors.New("not a run record: it has no schema number")
	case *head.Schema > SchemaVersion:
		return Record{}, fmt.Errorf("it has schema %d and this program knows up to %d: use a newer proctor", *head.Schema, SchemaVersion)
	}
	var r Record
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("not a run record: %w", err)
	}
	return r, Validate(r)
}

// normal gives every list of the schema a value, so that readers never meet null.
func normal(r Record) Record {
	r.Baseline = list(r.Baseline)
	r.Calls = list(r.Calls)
	r.Confinement = list(r.Confinement)
	r.Removed = list(r.Removed)
	if r.Egress != nil {
		e := *r.Egress
		e.Allow, e.Hosts = list(e.Allow), slices.Clone(list(e.Hosts))
		for i := range e.Hosts {
			e.Hosts[i].By = list(e.Hosts[i].By)
		}
		r.Egress = &e
	}
	r.Risk.Why = list(r.Risk.Why)
	ticks := make([]Tick, len(r.Ticks))
	for i, t := range r.Ticks {
		t.Started = t.Started.UTC()
		t.Files, t.Guard, t.Gates, t.Proof = list(t.Files), list(t.Guard), list(t.Gates), list(t.Proof)
		if t.Review != nil {
			v := *t.Review
			v.Findings = list(v.Findings)
			t.Review = &v
		}
		ticks[i] = t
	}
	r.Ticks = ticks
	r.Started, r.Ended = r.Started.UTC(), r.Ended.UTC()
	return r
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// WriteFile writes b to path through a temporary file beside it, so that a reader or a crash sees
// the old file or the new one and never half of either. The directory is made when it is missing.
func WriteFile(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err = f.Write(b); err != nil {
		return err
	}
	// CI runners upload the directory as another user than the one who wrote it.
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
