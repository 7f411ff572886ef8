package run

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
)

// generators are members of which the workers from a number on draw alone.
func generators(workers, from int) []crew.Member {
	members := newMembers(workers, 2)
	for i := range members {
		m := &members[i]
		m.Generates = m.Role == crew.Worker && int(m.ID[1]-'0') >= from
	}
	return members
}

// A run needs a worker that learns: none begins with generators alone, the last one is waited for while generators are
// there, and without it the run ends. A generator has no seat in a run whose units do not draw.
func TestGeneratorsLearnNothing(t *testing.T) {
	if _, err := New(apart(1), generators(3, 0), 1); !errors.Is(err, refusal.ErrTerms) {
		t.Errorf("a run of generators begins: %v", err)
	}
	if _, err := New(newTerms(), generators(3, 2), 1); !errors.Is(err, refusal.ErrTerms) {
		t.Errorf("a generator is a member where no units draw: %v", err)
	}
	g := begin(t, apart(1), generators(3, 1))
	if _, _, err := g.s.Leave(g.env(), "w0"); !errors.Is(err, refusal.ErrLast) {
		t.Errorf("the last worker that learns leaves: %v", err)
	}
	if _, _, err := g.s.Leave(g.env(), "w1"); err != nil {
		t.Errorf("a generator may not leave: %v", err)
	}
	d := g.s.edit(g.env())
	for range transition.MaxMissed {
		d.RecordMiss("w0", reason.MissedDeadlines)
		d.RecordMiss("w1", reason.MissedDeadlines)
	}
	if !d.IsActive("w0") || d.IsActive("w1") {
		t.Errorf("after %d missed deadlines: %+v", transition.MaxMissed, d.Members)
	}
	g.s.Members[0].Missed = transition.MaxMissed
	d = g.s.edit(g.env())
	if d.Admit("w2"); !d.IsActive("v0") {
		t.Error("a generator takes the place of a verifier")
	}
	d.Leave("w0", reason.Verdict)
	s, _ := d.finish()
	s, _ = s.Tick(transition.Env{Height: g.env().Height + 1, Beacon: g.env().Beacon})
	if s.Phase != progress.Halted || s.Why != reason.NoWorkers {
		t.Errorf("without a worker that learns the run is in phase %s (%s)", s.Phase, s.Why)
	}
}

// A generator that joins is tried on a unit that draws, and gets units that draw.
func TestGeneratorsJoin(t *testing.T) {
	g := begin(t, apart(1), newMembers(3, 2))
	g.must(func(s State) (State, []event.Event, error) {
		return s.Join(g.env(), []crew.Member{{ID: "x", Role: crew.Worker, Generates: true}})
	})
	if m, _ := g.s.Member("x"); !m.Generates || m.Class() != crew.Generator {
		t.Errorf("%+v", m)
	}
	for _, bad := range []State{begin(t, newTerms(), newMembers(3, 2)).s, g.s} {
		who := crew.Member{ID: "y", Role: crew.Verifier, Generates: true}
		if bad.Terms.Rollout.Units == 0 {
			who.Role = crew.Worker
		}
		if _, _, err := bad.Join(g.env(), []crew.Member{who}); !errors.Is(err, refusal.ErrTerms) {
			t.Errorf("%+v joins: %v", who, err)
		}
	}
}
