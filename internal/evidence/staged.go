package evidence

// staged says which job of a split run vouches for what: whoever reads a number has to know whose word it is.
func (p *page) staged(r Record) {
	if text := r.whoSays(); text != "" {
		p.linef("\n### Who says so\n\n%s", text)
	}
}

// whoSays is one paragraph of ours, "" where one job did it all.
func (r Record) whoSays() string {
	const agents = "the agent's job, a machine on which the agent ran: a reviewer's verdict and a cost can be forged there, a gate of the proof cannot"
	switch s := r.Staged; {
	case s == nil:
		return ""
	case s.Verified && s.Stage == "verify":
		return "This job took the bytes of the commit from the agent's job and nothing else. Patch policy and proof are its own findings, on a fresh machine without secrets."
	case s.Verified:
		return "Commit, patch policy and the proof's gates are findings of the verify job: a fresh machine without secrets, which took nothing from the agent's job but the commit's bytes. " +
			"Ticks, model calls, cost, added tests, confinement and the reviewer's verdict are the word of " + agents + "."
	case s.Stage == "agent":
		return "This is the agent's job of a run split in several: its token can push nothing. The proof is repeated on another machine before anything is published."
	}
	return "No verify job vouches for this. Everything here is the word of " + agents + "."
}
