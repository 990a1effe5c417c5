package meter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// scan walks a request in one pass and notes what decides about money and about reach: a request may ask
// the provider to fetch pages, run code or call further servers, which would lead out of the sandbox and
// is billed beside the tokens. It is strict where a second reading of the same bytes could differ from the
// provider's: a repeated name is an error, and names are compared exactly.
type scan struct {
	dec    *jsontext.Decoder
	ask    *ask
	refuse string // why the request is not let through; the first reason stands
	rules
}

// rules are what one API's requests mean.
type rules struct {
	// opaque members hold a tool's own data: whatever stands in them asks the provider for nothing.
	opaque func(name string) bool
	// keep says which members of an object see wants to know.
	keep func(name string) bool
	// known are the members of the request itself that decide about anything. A gateway may compare names without regard
	// to case and take the last of two, so that one of them in other letters is refused.
	known []string
	// top reads a member of the request itself; false leaves it to the walk.
	top func(s *scan, name string) (bool, error)
	// see judges an object when it is closed.
	see func(s *scan, o node)
}

// node is one object of a request.
type node struct {
	name    string // of the member that it stands in; of the list, for one in a list
	members []member
}

type member struct{ name, text string }

// has says whether an object has a kept member that is not null; text is its text, where it is one.
func (o node) has(name string) bool {
	for _, m := range o.members {
		if m.name == name {
			return true
		}
	}
	return false
}

func (o node) text(name string) string {
	for _, m := range o.members {
		if m.name == name {
			return m.text
		}
	}
	return ""
}

// keptText is how much of a text is kept: enough to know a type or the beginning of a URL.
const keptText = 64

func readRequest(body []byte, a *ask, r rules) error {
	s := scan{dec: jsontext.NewDecoder(bytes.NewBuffer(body)), ask: a, rules: r}
	if s.dec.PeekKind() != '{' {
		return errors.New("the request body is not a JSON object")
	}
	if err := s.object("", 0); err != nil {
		return fmt.Errorf("the request body cannot be read: %w", err)
	}
	if s.refuse != "" {
		return errors.New(s.refuse)
	}
	return nil
}

// deny notes why the request is not let through.
func (s *scan) deny(why string) {
	if s.refuse == "" {
		s.refuse = why
	}
}

func (s *scan) value(name string, depth int) error {
	switch s.dec.PeekKind() {
	case '{':
		return s.object(name, depth)
	case '[':
		if _, err := s.dec.ReadToken(); err != nil {
			return err
		}
		for s.dec.PeekKind() != ']' {
			if err := s.value(name, depth); err != nil {
				return err
			}
		}
		_, err := s.dec.ReadToken()
		return err
	default:
		return s.dec.SkipValue()
	}
}

func (s *scan) object(parent string, depth int) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	o := node{name: parent}
	for s.dec.PeekKind() != '}' {
		tok, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := s.member(&o, tok.String(), depth); err != nil {
			return err
		}
	}
	s.see(s, o)
	_, err := s.dec.ReadToken()
	return err
}

func (s *scan) member(o *node, name string, depth int) error {
	kind := s.dec.PeekKind()
	if s.keep(name) && kind != 'n' {
		m := member{name: name}
		if kind == '"' {
			tok, err := s.dec.ReadToken()
			if err != nil {
				return err
			}
			m.text = tok.String()
			m.text = strings.Clone(m.text[:min(len(m.text), keptText)])
			o.members = append(o.members, m)
			return nil
		}
		o.members = append(o.members, m)
	}
	if s.opaque(name) {
		return s.dec.SkipValue()
	}
	if depth == 0 {
		if i := slices.IndexFunc(s.known, func(k string) bool { return k != name && strings.EqualFold(k, name) }); i >= 0 {
			return fmt.Errorf("it says %s: write %s, as some gateways would read it", printable(name), s.known[i])
		}
		if done, err := s.top(s, name); done || err != nil {
			return err
		}
	}
	return s.value(name, depth+1)
}

// modelNameLimit is in bytes. A name is kept with each call, in the log and in the event log, and an unpriced one is
// compared with nothing.
const modelNameLimit = 200

// modelName reads the member that names the model.
func (s *scan) modelName() error {
	if s.dec.PeekKind() != '"' {
		return errors.New("model is not a string")
	}
	tok, err := s.dec.ReadToken()
	if err != nil {
		return err
	}
	s.ask.model = tok.String()
	if n := len(s.ask.model); n > modelNameLimit {
		return fmt.Errorf("model is a name of %d bytes: %d are the most", n, modelNameLimit)
	}
	return nil
}

// count reads a member that is a number of things; null is 0.
func (s *scan) count(name string) (int64, error) {
	switch s.dec.PeekKind() {
	case 'n':
		return 0, s.dec.SkipValue()
	case '0':
	default:
		return 0, fmt.Errorf("%s is not a number", name)
	}
	tok, err := s.dec.ReadToken()
	if err != nil {
		return 0, err
	}
	f, err := tok.Float()
	if err != nil || f < 0 || f > 1e9 {
		return 0, fmt.Errorf("%s is out of range", name)
	}
	return int64(f), nil
}

// oneAnswer denies several answers at once: they multiply what a call can cost beyond what a bound on it holds.
func (s *scan) oneAnswer(name string, n int64) {
	if n > 1 {
		s.deny(fmt.Sprintf("%s of %d asks for several answers at once and is not allowed here: leave it out", name, n))
	}
}

// word reads a member that is a text; anything else, null included, is "".
func (s *scan) word() (string, error) {
	if s.dec.PeekKind() != '"' {
		return "", s.dec.SkipValue()
	}
	tok, err := s.dec.ReadToken()
	return tok.String(), err
}

// forbid denies the request when a member is set.
func (s *scan) forbid(name, why string) {
	if s.dec.PeekKind() != 'n' {
		s.deny(name + " " + why)
	}
}

const (
	outside  = "lets the provider act outside the sandbox and is not allowed here"
	ownPrice = "has a price of its own, which the meter does not know: leave it out"
	unseen   = "brings in what the provider has kept, whose size and price the meter cannot see: send the whole conversation"
)
