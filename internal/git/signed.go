package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// byForge tells whether a forge made and signed the commit for an App: GitHub makes the App's bot the author then, and itself, by an address
// noreply@HOST, the committer. What a person does at the forge has that committer too and the person as its author; what they do in
// a clone, an amendment or a rebase, makes them the committer.
func (c Commit) byForge() bool {
	author, _, _ := strings.Cut(addressOf(c.Author), "@")
	name, _, _ := strings.Cut(c.Author, " <")
	committer, _, _ := strings.Cut(addressOf(c.Committer), "@")
	return c.Signed && strings.HasSuffix(name, "[bot]") && strings.HasSuffix(author, "[bot]") && committer == "noreply"
}

// addressOf is the address in "Name <address>".
func addressOf(who string) string {
	_, address, _ := strings.Cut(who, " <")
	return strings.TrimSuffix(address, ">")
}

// Unsigned are the commits of ours that a forge has not signed, from head down to the base of their run or to a commit of somebody else's,
// whose parents cannot change without it. Parents come before children; none where head itself is signed or not ours.
func (s *Store) Unsigned(ctx context.Context, head ID) ([]Commit, error) {
	var out []Commit
	done, stop := map[ID]bool{}, map[ID]bool{s.base: true}
	var visit func(id ID) error
	visit = func(id ID) error {
		if done[id] || stop[id] {
			return nil
		}
		done[id] = true
		if len(done) > maxBranch {
			return fmt.Errorf("more than %d commits would have to be signed", maxBranch)
		}
		c, err := s.ReadCommit(ctx, id)
		var missing *MissingObjectError
		if errors.As(err, &missing) && id != head {
			return nil // the edge of a shallow clone
		}
		if err != nil {
			return err
		}
		if !s.ours(c) || c.byForge() {
			return nil
		}
		stop[ID(c.Trailer(TrailerBase))] = true
		for _, parent := range c.Parents {
			if err := visit(parent); err != nil {
				return err
			}
		}
		out = append(out, c)
		return nil
	}
	if err := visit(head); err != nil {
		return nil, fmt.Errorf("list the commits to sign: %w", err)
	}
	return out, nil
}

// Signed is a commit that a forge says it made and signed.
type Signed struct {
	ID        ID
	Payload   string // what was signed: the commit without its signature
	Signature string // armoured
}

// maxSignature bounds an armoured signature; those of OpenPGP and SSH have some hundred bytes.
const maxSignature = 64 << 10

// ErrSigned: what a forge made is not the commit that it was asked for.
var ErrSigned = errors.New("the forge made another commit than the one that was proved")

// KeepSigned stores a commit that a forge made of ours, with these parents in the place of ours. It is built here from what was signed, and refused
// (ErrSigned) unless tree, parents and message are the ones asked for, nothing else is in it but author and committer, and its id is the one that
// the forge names. Line ends at the message's end may differ.
func (s *Store) KeepSigned(ours Commit, parents []ID, made Signed) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: of %s: %s", ErrSigned, ours.ID, fmt.Sprintf(format, args...))
	}
	head, message, ok := strings.Cut(made.Payload, "\n\n")
	if want := headerOf(ours.Tree, parents); !ok || !strings.HasPrefix(head+"\n", want) {
		return refuse("what was signed has another tree or other parents")
	} else if !onlyPeople(strings.TrimPrefix(head+"\n", want)) {
		return refuse("what was signed has more than tree, parents, author and committer")
	}
	if strings.TrimRight(message, "\n") != strings.TrimRight(ours.Message, "\n") {
		return refuse("what was signed has another message")
	}
	if made.Signature == "" || len(made.Signature) > maxSignature || strings.Contains(made.Signature, "\x00") {
		return refuse("there is no signature of a usual size")
	}
	for _, text := range s.withSignature(head, message, made.Signature) {
		if s.fmt.hash("commit", []byte(text)) != made.ID {
			continue
		}
		if c, err := s.fmt.parseCommit(text); err != nil || c.Tree != ours.Tree || !slices.Equal(c.Parents, parents) {
			return refuse("it cannot be read back: %v", err)
		}
		_, err := s.loose.write("commit", []byte(text))
		return err
	}
	return refuse("no commit with what was signed and its signature has the id %s", made.ID)
}

// headerOf is how a commit of that tree and those parents begins.
func headerOf(tree ID, parents []ID) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	return b.String()
}

// onlyPeople tells whether the rest of a commit's header is an author and a committer.
func onlyPeople(rest string) bool {
	lines := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
	return len(lines) == 2 && strings.HasPrefix(lines[0], "author ") && strings.HasPrefix(lines[1], "committer ")
}

// withSignature are the commits that may be meant. A signature stands behind the committer, each line but its first indented by a blank. GitHub's
// ends with a line end, and the empty line behind that is indented too; git's own signing writes no such line.
func (s *Store) withSignature(head, message, signature string) (texts []string) {
	name := "gpgsig"
	if s.fmt.name != sha1Format().name {
		name += "-" + s.fmt.name
	}
	bare := strings.TrimRight(signature, "\n")
	for _, sig := range slices.Compact([]string{signature, bare + "\n", bare}) {
		texts = append(texts, head+"\n"+name+" "+strings.ReplaceAll(sig, "\n", "\n ")+"\n\n"+message)
	}
	return texts
}
