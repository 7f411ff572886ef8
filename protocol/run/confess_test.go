package run

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// A worker that finds its commitment wrong in time loses the unit alone: it stays, there is no conviction, and the
// right result of another worker ends the round.
func TestConfessionCostsTheUnitOnly(t *testing.T) {
	g := begin(t, long(), newMembers(3, 2))
	g.tick(1)
	worker := g.s.Units[0].Worker
	wrong := commitment(g.s.RoundState, 0)
	wrong.Segments[2][0]++
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), worker, work.UnitID{}, wrong)
	})
	for name, f := range map[string]func(State) (State, []event.Event, error){
		"not_yours": func(s State) (State, []event.Event, error) {
			return s.Confess(g.env(), "v0", work.UnitID{})
		},
		"wrong_phase": func(s State) (State, []event.Event, error) {
			return s.Confess(g.env(), s.Units[1].Worker, work.UnitID{Unit: 1})
		},
		"stale": func(s State) (State, []event.Event, error) {
			return s.Confess(g.env(), worker, work.UnitID{Attempt: 7})
		},
	} {
		if err := g.do(f); codeOf(err) != name {
			t.Errorf("wanted %s: %v", name, err)
		}
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.Confess(g.env(), worker, work.UnitID{})
	})
	if u := g.s.Units[0]; u.Status != work.Assigned || u.Worker == worker || u.Attempt != 1 ||
		len(u.PreviousAssignees) > 0 {
		t.Errorf("after the confession: %+v", u)
	}
	if m, _ := g.s.Member(worker); !m.Active || m.Missed != 1 {
		t.Errorf("who confessed: %+v", m)
	}
	if e := g.events[len(g.events)-1]; e.Kind != event.UnitReassigned || e.Why != reason.Confessed || e.Who != worker {
		t.Errorf("the last event: %+v", e)
	}
	g.finish()
	if g.count(event.DisputeEnded) > 0 {
		t.Error("a confessed unit was disputed")
	}
}

// A confession is refused once the beacon that draws the audits may be known: a worker could otherwise fake every
// unit, and confess the drawn ones.
func TestNobodyConfessesWhatMayBeDrawn(t *testing.T) {
	g := begin(t, long(), newMembers(3, 2))
	g.tick(1)
	g.commitAll()
	u := g.s.Units[0]
	confess := func(s State) (State, []event.Event, error) {
		return s.Confess(g.env(), u.Worker, work.UnitID{})
	}
	if _, _, err := confess(g.s); err != nil {
		t.Errorf("in the block of the last commitment: %v", err)
	}
	g.height++ // the proposer of this block knows its beacon
	if err := g.do(confess); codeOf(err) != "wrong_phase" {
		t.Errorf("in the block that draws the audits: %v", err)
	}
	g.tick(1)
	if err := g.do(confess); codeOf(err) != "wrong_phase" {
		t.Errorf("after the draw: %v", err)
	}
}

// A worker that confesses repeatedly cannot delay a round for ever: it is excluded like one that misses deadlines.
func TestWhoConfessesForEverIsLetGo(t *testing.T) {
	g := begin(t, long(), newMembers(3, 2))
	busy := func() bool { m, _ := g.s.Member("w0"); return m.Active }
	for i := 0; i < 100 && busy(); i++ {
		g.tick(1)
		for j := range g.s.Units {
			if u := g.s.Units[j]; busy() && u.Worker == "w0" && u.Status == work.Assigned {
				g.commit(u.Index)
				g.must(func(s State) (State, []event.Event, error) {
					return s.Confess(g.env(), "w0", u.ID(s.Round))
				})
			}
		}
		for _, u := range g.s.Units {
			if u.Status == work.Assigned && u.Worker != "w0" {
				g.commit(u.Index)
			}
		}
		g.passAll()
		g.attestAll()
	}
	if m, _ := g.s.Member("w0"); m.Active || m.Why != reason.Confessed {
		t.Errorf("who confesses for ever: %+v", m)
	}
	g.finish()
}
