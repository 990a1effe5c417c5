package evidence

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Claim is the part of a record that anybody can repeat: the ids, and how each gate of the proof ended.
type Claim struct {
	Run  string `json:"run"`
	Tool string `json:"tool"` // version of the program that wrote it
	Base Commit `json:"base"`
	Head Commit `json:"head"` // what was proved, or what the last proof looked at
	// Pushed is the id under which the forge signed the head, "" where the head itself was pushed. Its tree is the head's.
	Pushed string `json:"pushed,omitempty"`
	Config string `json:"config"`
	// HeldOut is where held-out files came from that are not the base commit's own; nil: there were none.
	HeldOut *HeldOut      `json:"held_out,omitempty"`
	Gates   []ClaimedGate `json:"gates"` // in the order they ran; empty: an earlier run proved it, and all passed
}

// OnBranch is the commit that the branch was left at: the head, or what the forge signed in its place.
func (c Claim) OnBranch() string {
	if c.Pushed != "" {
		return c.Pushed
	}
	return c.Head.ID
}

// ClaimedGate is one gate of a proof. The command is left out: the base commit's configuration has it.
type ClaimedGate struct {
	Class  string `json:"class"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Exit   int    `json:"exit"`
}

// Claim is what the record says about its last proof. ok is false when there was none: the run never got
// so far, and there is nothing to repeat.
func (r Record) Claim() (c Claim, ok bool) {
	c = Claim{Run: r.Run, Tool: r.Tool.Version, Base: r.Base, Config: r.Config.Digest, HeldOut: r.HeldOut, Gates: []ClaimedGate{}}
	proved := (r.Terminal == Done || r.Terminal == PublishFailed) && !r.rehearsal() && r.Head != nil
	if proved {
		c.Head = *r.Head
		if id := r.pushedID(); id != c.Head.ID {
			c.Pushed = id
		}
	}
	for i := len(r.Ticks) - 1; i >= 0; i-- {
		t := r.Ticks[i]
		if len(t.Proof) == 0 || t.Commit == nil {
			continue
		}
		if !proved {
			c.Head = *t.Commit
		}
		for _, g := range t.Proof {
			c.Gates = append(c.Gates, ClaimedGate{g.Class, g.Name, g.Status, g.ExitCode})
		}
		return c, true
	}
	return c, proved
}

const claimMarkerHead = "<!-- proctor:claim "

// marker is the claim as a line of a body that nobody sees. The encoding has neither marks nor blanks: no
// text in it can end the comment, mention anybody or close an issue.
func (c Claim) marker() string {
	b, err := json.Marshal(c)
	if err != nil {
		// Texts and numbers only.
		panic("evidence: marshal claim: " + err.Error())
	}
	return claimMarkerHead + base64.RawStdEncoding.EncodeToString(b) + pullMarkerTail
}

// PullRequestClaim reads the claim from a body that PRBody made; ok is false when the body is not of that
// kind or its two markers disagree. It says nothing about who wrote the body, nor whether the claim is true.
func PullRequestClaim(body string) (c Claim, ok bool) {
	head := PullRequestHead(body)
	_, rest, _ := strings.Cut(body, "\n")
	text, ok := strings.CutPrefix(rest, claimMarkerHead)
	if head == "" || !ok {
		return Claim{}, false
	}
	text, _, ok = strings.Cut(text, pullMarkerTail)
	b, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil || json.Unmarshal(b, &c) != nil || c.Check() != nil || c.OnBranch() != head {
		return Claim{}, false
	}
	return c, true
}

// Proves tells whether a commit is the one that was proved, or what the forge signed in its place. Whoever compares the head of a branch with a claim asks here.
func (c Claim) Proves(commit string) bool { return c.OnBranch() == commit }

// Check says what is misshapen about a claim, wrapped in ErrInvalid, or nil.
func (c Claim) Check() error {
	k := &checker{}
	k.id("base", c.Base, true)
	k.id("head", c.Head, true)
	k.need(len(c.Base.ID) == len(c.Head.ID), "base and head have ids of two kinds")
	k.need(c.Pushed == "" || idShape.MatchString(c.Pushed) && len(c.Pushed) == len(c.Head.ID), "pushed commit %q: want an id like the head's", c.Pushed)
	k.need(digestShape.MatchString(c.Config), "config digest %q: want SHA-256", c.Config)
	return k.err()
}
