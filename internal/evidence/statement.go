package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// StatementFile lies beside the record.
const StatementFile = "proctor-run.intoto.json"

// Types of the in-toto attestation framework (in-toto.io/Statement/v1) and of our predicate. The
// predicate's address is a name, with its version at the end; nothing has to answer there.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://github.com/proctor-ci/proctor/attestation/run/v1"
)

// Statement is an in-toto statement about one commit. It is not signed: it binds the record to the commit,
// and whoever signs it (cosign attest, actions/attest) adds who says so.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is a resource by digest: gitCommit or gitTree, hex.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Predicate is what the run says about its subject. It repeats the record where a policy engine decides, and
// names the record's digest for the rest.
type Predicate struct {
	Record      Resource        `json:"record"`
	Run         string          `json:"run"`
	Builder     Builder         `json:"builder"`
	Base        Commit          `json:"base"`
	Config      ConfigRef       `json:"config"`
	Source      StatementSource `json:"source"`
	Verdict     string          `json:"verdict"` // the terminal's word; "done" is the only one that means proved
	Proved      bool            `json:"proved"`
	Gates       []StatementGate `json:"gates"` // of the last tick and its proof
	Review      *StatementView  `json:"review,omitempty"`
	Confinement []StatementHold `json:"confinement"`
	StartedOn   time.Time       `json:"startedOn"`
	FinishedOn  time.Time       `json:"finishedOn"`
}

// Resource names a file by its digest ("sha256" → hex).
type Resource struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Builder is the program and the CI job that ran it.
type Builder struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	RunURL  string `json:"runUrl,omitempty"`
}

// StatementSource is who asked for what.
type StatementSource struct {
	Forge      string `json:"forge"`
	Repository string `json:"repository,omitempty"`
	Issue      int    `json:"issue,omitempty"`
	Snapshot   string `json:"snapshot"`
	Actor      string `json:"actor"`
}

// StatementGate is one gate run.
type StatementGate struct {
	Class  string `json:"class"`
	Name   string `json:"name"`
	Where  string `json:"where"`
	Status string `json:"status"`
	Exit   int    `json:"exit"`
}

// StatementView is the reviewer's verdict.
type StatementView struct {
	Approved bool   `json:"approved"`
	Model    string `json:"model"`
}

// StatementHold is one part of the confinement.
type StatementHold struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
}

// WriteStatement writes the statement about the record that lies in dir, as Write left it there. A run
// without a commit has no subject, and so no statement: that is false and no error.
func WriteStatement(dir string, r Record) (bool, error) {
	if r.Head == nil {
		return false, nil
	}
	sum, err := digestOf(filepath.Join(dir, RecordFile))
	if err != nil {
		return false, fmt.Errorf("write statement: %w", err)
	}
	b, err := json.MarshalIndent(newStatement(r, sum), "", "  ")
	if err != nil {
		return false, fmt.Errorf("encode statement: %w", err)
	}
	return true, WriteFile(filepath.Join(dir, StatementFile), append(b, '\n'))
}

func newStatement(r Record, recordSum string) Statement {
	where := r.Trigger.Repo
	if where == "" {
		where = "local"
	}
	p := Predicate{
		Record: Resource{RecordFile, map[string]string{"sha256": recordSum}}, Run: r.Run,
		Builder: Builder{ID: "https://github.com/proctor-ci/proctor", Version: r.Tool.Version, Commit: r.Tool.Commit, RunURL: r.RunURL},
		Base:    r.Base, Config: r.Config,
		Source:  StatementSource{r.Trigger.Forge, r.Trigger.Repo, r.Trigger.Issue, r.Trigger.Snapshot, r.Trigger.Actor},
		Verdict: r.Terminal, Proved: r.Terminal == Done && !r.rehearsal(), Gates: []StatementGate{}, Confinement: []StatementHold{},
		StartedOn: r.Started.UTC(), FinishedOn: r.Ended.UTC(),
	}
	if t := r.last(); t != nil {
		for _, g := range r.deciding() {
			p.Gates = append(p.Gates, StatementGate{g.Class, g.Name, g.Where, g.Status, g.ExitCode})
		}
		if t.Review != nil {
			p.Review = &StatementView{t.Review.Approved, t.Review.Model}
		}
	}
	for _, e := range r.Confinement {
		p.Confinement = append(p.Confinement, StatementHold{e.Name, e.Active})
	}
	st := Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: p,
		Subject: []Subject{
			{where + "@commit", map[string]string{"gitCommit": r.Head.ID}},
			{where + "@tree", map[string]string{"gitTree": r.Head.Tree}},
		},
	}
	if pushed := r.pushedID(); pushed != r.Head.ID {
		st.Subject = append(st.Subject, Subject{where + "@pushed", map[string]string{"gitCommit": pushed}})
	}
	return st
}

// ReadStatement reads the statement beside a record; fs.ErrNotExist when there is none.
func ReadStatement(dir string) (Statement, error) {
	f, err := os.Open(filepath.Join(dir, StatementFile))
	if err != nil {
		return Statement{}, fmt.Errorf("read statement: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return Statement{}, fmt.Errorf("read statement: %w", err)
	}
	var s Statement
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read statement %s: %w", filepath.Join(dir, StatementFile), err)
	}
	return s, nil
}

// Binds says how the statement fails to bind the record file to the record's commit, or nil.
func (s Statement) Binds(recordFile string, r Record) error {
	sum, err := digestOf(recordFile)
	if err != nil {
		return err
	}
	var wrong []error
	if s.Type != StatementType || s.PredicateType != PredicateType {
		wrong = append(wrong, fmt.Errorf("it is of type %q with a predicate %q, not a statement of this program", s.Type, s.PredicateType))
	}
	if s.Predicate.Record.Digest["sha256"] != sum {
		wrong = append(wrong, fmt.Errorf("the record's digest is sha256:%s and the statement was made for sha256:%s", sum, s.Predicate.Record.Digest["sha256"]))
	}
	if r.Head == nil || !slices.Equal(s.digests("gitCommit"), slices.Compact([]string{r.Head.ID, r.pushedID()})) || !slices.Equal(s.digests("gitTree"), []string{r.Head.Tree}) {
		wrong = append(wrong, errors.New("its subject is not the record's commit and tree"))
	}
	return errors.Join(wrong...)
}

// digests are the subjects' digests of that kind.
func (s Statement) digests(kind string) (found []string) {
	for _, sub := range s.Subject {
		if d := sub.Digest[kind]; d != "" {
			found = append(found, strings.ToLower(d))
		}
	}
	return found
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxRecord+1)); err != nil || n > maxRecord {
		return "", errors.Join(err, fmt.Errorf("digest %s: %w", path, fs.ErrInvalid))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
