package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// StateVersion is the envelope's version that this program writes.
const StateVersion = 1

const (
	stateFile   = "proctor-state.json"
	stateFormat = "proctor-state"
	maxState    = 16 << 20
)

// envelope is the first line of stateFile; the payload follows it. Length and checksum tell a torn
// blob from a whole one, the ref a copied one from our own.
type envelope struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Ref     string `json:"ref"`
	Commit  ID     `json:"commit"`
	Bytes   int    `json:"bytes"`
	SHA256  string `json:"sha256"`
}

// State is a checkpoint as it was saved.
type State struct {
	ID     ID // what the ref points at: the Expect of the next save
	Commit ID // the candidate, kept reachable by the ref
	Blob   []byte
}

// StateKind is why a checkpoint is not trusted.
type StateKind string

// Kinds of untrusted checkpoints.
const (
	Torn    StateKind = "torn"    // damaged or cut
	Foreign StateKind = "foreign" // not written by this program for this ref
	Newer   StateKind = "newer"   // written by a newer version
)

// StateError is a checkpoint that exists and is not trusted. ID still is the Expect that replaces it.
type StateError struct {
	Kind   StateKind
	Ref    string
	ID     ID
	Detail string
}

func (e *StateError) Error() string {
	next := "the run begins anew and replaces it"
	if e.Kind == Newer {
		next = "use the version of proctor that wrote it, or a newer one"
	}
	return fmt.Sprintf("checkpoint %s is %s: %s. Next: %s", e.Ref, e.Kind, e.Detail, next)
}

// WriteState stores a checkpoint and returns its commit, for Push (together with other refs, if one
// step is wanted). Its first parent is the candidate, so that the ref alone keeps the work reachable, and its tree is
// the candidate's with one file more: forges refuse commits that touch workflow files, and leaving them out
// would be a deletion.
func (s *Store) WriteState(ctx context.Context, ref string, commit ID, blob []byte) (ID, error) {
	if err := s.checkID(commit); err != nil {
		return "", fmt.Errorf("write state: %w", err)
	}
	if len(blob) > maxState {
		return "", fmt.Errorf("write state: %d bytes are more than %d", len(blob), maxState)
	}
	sum := sha256.Sum256(blob)
	head, err := json.Marshal(envelope{stateFormat, StateVersion, ref, commit, len(blob), hex.EncodeToString(sum[:])})
	if err != nil {
		return "", fmt.Errorf("write state: %w", err)
	}
	tree, err := s.Tree(ctx, commit)
	if err != nil {
		return "", fmt.Errorf("write state: %w", err)
	}
	entries, err := s.readTree(ctx, tree)
	if err != nil {
		return "", fmt.Errorf("write state: %w", err)
	}
	return s.writeBeside(entries, stateFile, append(append(head, '\n'), blob...), []ID{commit}, "Checkpoint\n")
}

// writeNote stores a commit whose tree holds one file.
func (s *Store) writeNote(name string, content []byte, parents []ID, message string) (ID, error) {
	return s.writeBeside(nil, name, content, parents, message)
}

// writeBeside stores a commit whose tree holds the entries and one file, in the place of an entry of its name.
func (s *Store) writeBeside(entries []treeEntry, name string, content []byte, parents []ID, message string) (ID, error) {
	blob, err := s.loose.write("blob", content)
	if err != nil {
		return "", err
	}
	beside := []treeEntry{{name, Entry{ModeFile, blob}}}
	for _, e := range entries {
		if e.name != name {
			beside = append(beside, e)
		}
	}
	raw, err := encodeTree(beside)
	if err != nil {
		return "", err
	}
	tree, err := s.loose.write("tree", raw)
	if err != nil {
		return "", err
	}
	return s.writeCommit(tree, parents, message)
}

// SaveState pushes a checkpoint to ref if the remote still has expect there (empty: nothing), and
// returns the new expect. A lost race is a *RemoteError of kind Rejected.
func (s *Store) SaveState(ctx context.Context, remote Remote, ref string, commit ID, blob []byte, expect ID) (ID, error) {
	id, err := s.WriteState(ctx, ref, commit, blob)
	if err != nil {
		return "", err
	}
	return id, s.Push(ctx, remote, []RefUpdate{{Name: ref, New: id, Expect: expect}})
}

// LoadState fetches and verifies a checkpoint. fs.ErrNotExist: there is none. *StateError: there is
// one that must not be trusted.
func (s *Store) LoadState(ctx context.Context, remote Remote, ref string) (State, error) {
	if err := s.bring(ctx, remote, ref); err != nil {
		return State{}, err
	}
	id, err := s.Ref(ref)
	if err != nil {
		return State{}, err
	}
	state := State{ID: id}
	bad := func(kind StateKind, detail string) (State, error) {
		return state, &StateError{Kind: kind, Ref: ref, ID: id, Detail: detail}
	}
	commit, err := s.ReadCommit(ctx, id)
	if err != nil {
		return bad(Foreign, err.Error())
	}
	content, err := s.ReadFile(ctx, id, stateFile, maxState+4096)
	var large *TooLargeError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad(Foreign, "it holds no "+stateFile)
	case errors.As(err, &large):
		return bad(Foreign, err.Error())
	case err != nil:
		return bad(Torn, err.Error())
	}
	payload, kind, detail := openEnvelope(content, ref, commit.Parents)
	if kind != "" {
		return bad(kind, detail)
	}
	state.Commit, state.Blob = commit.Parents[0], payload
	return state, nil
}

// openEnvelope verifies stateFile. kind is empty when the payload can be trusted.
func openEnvelope(content []byte, ref string, parents []ID) (payload []byte, kind StateKind, detail string) {
	line, payload, whole := bytes.Cut(content, []byte("\n"))
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		if bytes.HasPrefix(line, []byte(`{"format":"`+stateFormat)) || len(content) == 0 {
			return nil, Torn, "its first line is cut"
		}
		return nil, Foreign, "its first line is no envelope"
	}
	sum := sha256.Sum256(payload)
	switch {
	case e.Format != stateFormat:
		return nil, Foreign, fmt.Sprintf("its format is %q", e.Format)
	case e.Version > StateVersion:
		return nil, Newer, fmt.Sprintf("its version is %d, this program knows %d", e.Version, StateVersion)
	case e.Version < 1:
		return nil, Foreign, fmt.Sprintf("its version is %d", e.Version)
	case e.Ref != ref:
		return nil, Foreign, fmt.Sprintf("it was written for %q", e.Ref)
	case !whole || len(payload) < e.Bytes:
		return nil, Torn, fmt.Sprintf("%d of %d bytes are there", len(payload), e.Bytes)
	case len(payload) > e.Bytes:
		return nil, Torn, fmt.Sprintf("%d bytes are there instead of %d", len(payload), e.Bytes)
	case hex.EncodeToString(sum[:]) != e.SHA256:
		return nil, Torn, "its checksum does not match"
	case len(parents) != 1 || parents[0] != e.Commit:
		return nil, Torn, "it does not stand on the commit it was saved with"
	}
	return payload, "", ""
}
