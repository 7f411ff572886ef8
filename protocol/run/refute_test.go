package run

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Five of seven members sign a checkpoint that its updates do not make. A refutation excludes and slashes them, and
// the others attest the right one: the run ends as an honest one ends.
func TestWrongCheckpointIsTakenBack(t *testing.T) {
	honest := begin(t, long(), newMembers(5, 2))
	honest.finish()

	g := begin(t, long(), newMembers(5, 2))
	g.round()
	g.toAudits()
	right := vote(g.s, "").Next
	wrong := right
	wrong.Root[0]++
	liars := []string{"w0", "w1", "w2", "w3", "v0"}
	for _, id := range liars {
		g.must(func(s State) (State, []event.Event, error) {
			return s.Attest(g.env(), 1, progress.Vote{Member: id, Next: wrong})
		})
	}
	if g.s.Base != wrong {
		t.Fatalf("the base is %v", g.s.Base)
	}
	var entry progress.Entry
	for _, e := range g.events {
		if e.Kind == event.RoundAttested && e.Entry.Attestation.Checkpoint == wrong {
			entry = *e.Entry
		}
	}
	g.round() // is built on it

	other := entry
	other.Attestation.Checkpoint = right
	if _, _, err := g.s.Refute(g.env(), "somebody", other); !errors.Is(err, refusal.ErrStale) {
		t.Errorf("a checkpoint that nobody attested: %v", err)
	}
	first, _, err := g.s.Refute(g.env(), "somebody", entry)
	if err != nil {
		t.Fatal(err)
	}
	g.must(func(s State) (State, []event.Event, error) { return s.Refute(g.env(), "somebody", entry) })
	if g.s.Round != first.Round || g.s.Round != 1 {
		t.Fatalf("the run is in round %d", g.s.Round)
	}
	var refuted []string
	for _, e := range g.events {
		if e.Kind == event.CheckpointRefuted {
			refuted = append(refuted, e.Who)
			if e.Other != "somebody" {
				t.Errorf("%q is said to have shown it", e.Other)
			}
		}
	}
	slices.Sort(refuted)
	if slices.Sort(liars); !slices.Equal(refuted, liars) {
		t.Errorf("%v are refuted", refuted)
	}
	for _, id := range liars {
		if m, _ := g.s.Member(id); m.Active || m.Why != reason.WrongAttest {
			t.Errorf("%s is active: %+v", id, m)
		}
	}
	for i, u := range g.s.Units {
		if u.Status != work.Assigned && u.Commit.Update.IsZero() {
			t.Errorf("unit %d is not kept: %+v", i, u)
		}
	}
	if _, _, err := g.s.Refute(g.env(), "somebody", entry); !errors.Is(err, refusal.ErrStale) {
		t.Errorf("twice: %v", err)
	}
	g.finish()
	if g.s.Base.Root != honest.s.Base.Root {
		t.Errorf("the run ends at %v, an honest one at %v", g.s.Base, honest.s.Base)
	}
}

func TestNoRefutationInSlices(t *testing.T) {
	terms := long()
	terms.Slices = 4
	s := State{Progress: progress.Progress{Crew: crew.Crew{Terms: terms}, Phase: progress.Train}}
	if _, _, err := s.Refute(transition.Env{}, "somebody", progress.Entry{}); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("a checkpoint of slices: %v", err)
	}
}
