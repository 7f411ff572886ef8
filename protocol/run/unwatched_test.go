package run

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// One member that seals rubbish, or is away, must not end the run of others: it waits for a verifier.
func TestSoleVerifierThatOpensNothingEndsNoRun(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 1))
	g.toAudits()
	g.sealAll()
	for m, _ := g.s.Member("v0"); m.Active; m, _ = g.s.Member("v0") {
		g.tick(1)
	}
	if g.s.Phase == progress.Halted {
		t.Fatalf("the run ended with its verifier: %s", g.s.Why)
	}
	g.tick(5)
	if g.s.Unwatched == 0 || g.s.Phase == progress.Halted {
		t.Fatalf("phase %s, audits wait since %d", g.s.Phase, g.s.Unwatched)
	}
	g.must(func(s State) (State, []event.Event, error) {
		d := s.edit(g.env())
		d.Members = append(d.Members[:len(d.Members):len(d.Members)], crew.Member{ID: "z", Role: crew.Verifier, Active: true})
		after, events := d.finish()
		return after, events, nil
	})
	g.tick(1)
	if audits := g.s.Audits("z"); len(audits) != int(g.s.Terms.Units) || g.s.Unwatched != 0 {
		t.Errorf("who joins has %d of %d audits", len(audits), g.s.Terms.Units)
	}
	g.passAll()
	g.attestAll()
}

// A dispute is no reason to withhold an update: members report it missing, and the unit moves on as soon as the dispute
// is over.
func TestDisputedUpdateIsToBeServed(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	g.toAudits()
	worker := g.s.Units[0].Worker
	g.challenge(g.s.Units[0].Verifier, 0, 0)
	for _, m := range g.s.Members {
		if m.ID != worker {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, work.UnitID{}, 0)
			})
		}
	}
	g.verdict(0, 0, false)
	g.passAll()
	if u := g.s.Units[0]; u.Worker == worker {
		t.Errorf("a withheld update counts, since its unit was disputed: %+v", u)
	}
}
