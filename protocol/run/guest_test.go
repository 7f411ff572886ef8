package run

import (
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
)

// The only verifier of a run and a worker are accomplices, and pass each other's lie. A guest that executes the unit
// convicts the worker, and joins no quorum by that.
func TestStrangerConvictsWhatTheOnlyVerifierPasses(t *testing.T) {
	g := begin(t, long(), newMembers(3, 1))
	g.toAudits()
	liar := g.unit(0, 0).Worker
	g.pass("v0", 0, 0)
	_, quorum := g.s.Weighs(nil)
	g.must(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), "stranger", work.UnitID{})
	})
	if heads(g.s) != quorum || !g.s.Guest("stranger") || !g.s.Liable("stranger") || g.s.Voted("stranger") {
		t.Fatalf("the stranger as a member: %+v", g.s.Members)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Attest(g.env(), 0,
			vote(s, "stranger"))
	}); !errors.Is(err, refusal.ErrInactive) {
		t.Errorf("it attests: %v", err)
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), work.UnitID{}, true, false, liar)
	})
	if m, _ := g.s.Member(liar); m.Active || m.Why != reason.Verdict {
		t.Errorf("the liar: %+v", m)
	}
	if g.s.Liable("stranger") {
		t.Error("it owes something after the verdict")
	}
	g.finish()
}

// A guest that challenges right work loses its bond, and may not challenge again. The audit continues.
func TestStrangerThatAccusesFalselyIsOut(t *testing.T) {
	g := begin(t, long(), newMembers(3, 1))
	g.toAudits()
	g.must(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), "stranger", work.UnitID{})
	})
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), work.UnitID{}, false, false, "stranger")
	})
	if m, _ := g.s.Member("stranger"); m.Active || m.Why != reason.FalseChallenge {
		t.Errorf("the stranger: %+v", m)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), "stranger", work.UnitID{Unit: 1})
	}); !errors.Is(err, refusal.ErrInactive) {
		t.Errorf("it challenges again: %v", err)
	}
	if u := g.unit(0, 0); u.Status != work.Auditing || u.Verifier != "v0" {
		t.Errorf("the unit after a false challenge: %+v", u)
	}
	g.finish()
}

// Guests leave room for the challenges of members, and guests with nothing open do not fill a run.
func TestStrangersAreFew(t *testing.T) {
	g := begin(t, long(), newMembers(3, 1))
	g.toAudits()
	challenge := func(id string) func(State) (State, []event.Event, error) {
		return func(s State) (State, []event.Event, error) {
			return s.Challenge(g.env(), id, work.UnitID{})
		}
	}
	for i := range maxGuestChallengers {
		g.must(challenge(fmt.Sprint("s", i)))
	}
	if err := g.do(challenge("one-more")); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("one more than may: %v", err)
	}
	g.must(challenge("v0"))
	d := g.s.edit(g.env())
	for i := range 3 * crew.MaxGuests {
		d.Welcome(crew.Member{ID: fmt.Sprint("guest", i)})
	}
	guests := 0
	for _, m := range d.Members {
		if m.IsGuest() {
			guests++
		}
	}
	if guests > crew.MaxGuests+maxGuestChallengers || !d.Guest("s0") || d.Guest("guest0") {
		t.Errorf("%d guests are remembered", guests)
	}
}
