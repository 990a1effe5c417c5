package evidence

import (
	"fmt"

	"github.com/proctor-ci/proctor/internal/inert"
)

// pushedID is the id under which the head was pushed, or would be: the signed commit's, where the forge signed it.
func (r Record) pushedID() string {
	switch {
	case r.Head == nil:
		return ""
	case r.Signing != nil && r.Signing.Pushed != nil:
		return r.Signing.Pushed.ID
	}
	return r.Head.ID
}

// Said is the signing in one sentence.
func (s *Signing) Said() string {
	if s.Signed {
		return fmt.Sprintf("signed by the forge, %s with the trees that were proved", count(s.Commits, "commit"))
	}
	return "not signed: " + s.Reason
}

// signed is one line about the signature of what stands on the forge; "" where there is nothing to say.
func (p *page) signed(r Record) {
	if r.Signing != nil && r.Published != nil {
		p.linef("\n**Signature:** %s.", inert.Text(r.Signing.Said(), maxDetail))
	}
}

// signing holds what is said of signatures to the head (INV-15): the same tree under another id, or none.
func (c *checker) signing(r Record) {
	s := r.Signing
	if s == nil {
		return
	}
	c.need(s.Mode == "auto" || s.Mode == "required", "signing has the mode %q", s.Mode)
	c.need(r.Head != nil && s.Proved == *r.Head, "signing is of commit %q, which is not the head", s.Proved.ID)
	c.need(s.Signed == (s.Pushed != nil) && s.Signed == (s.Commits > 0), "signing says signed %v, pushed %v, %d commits", s.Signed, s.Pushed, s.Commits)
	c.need(s.Signed == (s.Reason == ""), "signing says signed %v with the reason %q", s.Signed, s.Reason)
	c.need(s.Mode != "required" || s.Signed || r.Published == nil, "a signature was required, and commit %q was published without one", s.Proved.ID)
	if s.Pushed != nil {
		c.id("pushed", *s.Pushed, true)
		c.need(s.Pushed.Tree == s.Proved.Tree, "the signed commit has the tree %q, and proved was %q", s.Pushed.Tree, s.Proved.Tree)
		c.need(s.Pushed.ID != s.Proved.ID, "the signed commit %q is the unsigned one", s.Pushed.ID)
	}
}
