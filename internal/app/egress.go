package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/proctor-ci/proctor/internal/egress"
	"github.com/proctor-ci/proctor/internal/evidence"
	"github.com/proctor-ci/proctor/internal/gate"
)

// maxEgressEvents bounds what a program that asks without end puts into the log; the record sums it all.
const maxEgressEvents = 1000

// openEgress starts the proxy, where the base commit's configuration lists hosts.
func (s *session) openEgress(ctx context.Context) error {
	if len(s.cfg.Sandbox.Egress) == 0 {
		return nil
	}
	told := make(chan struct{}, maxEgressEvents)
	p, err := egress.Start(ctx, egress.Config{Allow: s.cfg.Sandbox.Egress, Reach: s.env.Reach, On: func(r egress.Request) {
		select {
		case told <- struct{}{}:
			s.emit(evidence.EgressEvent, r.Tick, slog.String(evidence.KeyBy, r.By), slog.String(evidence.KeyHost, r.Host), slog.Int(evidence.KeyPort, int(r.Port)),
				slog.String(evidence.KeyVerdict, string(r.Verdict)), slog.String(evidence.KeyReason, r.Why), slog.Int64(evidence.KeySent, r.Sent),
				slog.Int64(evidence.KeyReceived, r.Received), slog.Duration(evidence.KeyMillis, time.Duration(r.Millis)*time.Millisecond))
		default:
		}
	}})
	if err != nil {
		return err
	}
	s.egress = p
	return nil
}

// closeEgress ends the proxy and puts what it was asked into the record. It may be called twice.
func (s *session) closeEgress() {
	if s.egress == nil {
		return
	}
	s.egress.Close()
	seen, left := s.egress.Seen()
	e := &evidence.Egress{Allow: s.cfg.Sandbox.Egress, Cut: left}
	for _, h := range seen {
		e.Hosts = append(e.Hosts, evidence.EgressHost{
			Host: h.Host, Port: int(h.Port), Verdict: string(h.Verdict), Why: h.Why, By: h.By, Requests: h.Requests, Sent: h.Sent, Received: h.Received,
		})
	}
	s.rec.Egress = e
}

// outward is what runs a gate, and its place as it sees it: with egress, but for the gates of a proof. The candidate's
// code runs there, and has run there, beside the held-out files; only the setup, which comes before them, may go out.
func (s *session) outward(spec gate.Spec, at place) (*gate.Runner, gate.Place) {
	runner := s.gates
	switch {
	case at.proof && spec.Class == gate.Setup:
		runner = s.proofSetup
	case at.proof:
		return s.proofGates, at.Place
	}
	p := at.Place
	p.Env = slices.Concat(p.Env, s.egress.Env())
	return runner, p
}

// missedEgress tells why a gate may fail in a proof that passed before it.
func (s *session) missedEgress(spec gate.Spec) {
	seen, _ := s.egress.Seen()
	for _, h := range seen {
		if h.Verdict == egress.Allowed && slices.Contains(h.By, spec.Name) {
			s.note(fmt.Sprintf("the %s gate fetched from %s:%d at a tick, and failed in the proof, where only setup has egress. Next: fetch it in setup", spec.Name, h.Host, h.Port))
			return
		}
	}
}

// egress shows what was not let through, each host once.
func (a *account) egress(e evidence.Event) {
	verdict := e.Text(evidence.KeyVerdict)
	host := fmt.Sprintf("%s:%d", e.Text(evidence.KeyHost), e.Int(evidence.KeyPort))
	key := verdict + " " + host
	if verdict == string(egress.Allowed) || a.kept[key] {
		return
	}
	if a.kept == nil {
		a.kept = map[string]bool{}
	}
	a.kept[key] = true
	a.step(e.Tick, "egress", a.mark(verdict)+" "+host+" for "+e.Text(evidence.KeyBy)+": "+e.Text(evidence.KeyReason))
}
