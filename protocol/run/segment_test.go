package run

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// drawn are terms under which audits end at a drawn segment.
func drawn() terms.Terms {
	t := long()
	t.Units, t.PartialAudits = 64, true
	return t
}

// Every segment is drawn, about as often as any other. A run that does not ask for it audits whole units.
func TestSegmentsAreDrawn(t *testing.T) {
	g := begin(t, drawn(), newMembers(4, 2))
	g.toAudits()
	times := make([]int, 4)
	for _, u := range g.s.Units {
		times[u.Segment]++
	}
	if slices.Min(times) < 6 || slices.Max(times) > 28 { // four standard deviations about 16
		t.Errorf("of 64 audits so many end at each segment: %v", times)
	}
	whole := drawn()
	whole.PartialAudits = false
	g = begin(t, whole, newMembers(4, 2))
	g.toAudits()
	if len(g.s.Where(func(u work.Unit) bool { return u.Segment != 0 })) > 0 {
		t.Error("a segment is drawn that nobody asked for")
	}
}

// A run whose audits end at drawn segments ends like any other, and its events say how far each audit went.
func TestDrawnRun(t *testing.T) {
	all := drawn()
	all.Units = 4
	g := begin(t, all, newMembers(3, 2))
	g.finish()
	asked, answered := map[[2]uint32]uint32{}, 0
	for _, e := range g.events {
		switch at := [2]uint32{e.Round, e.Unit}; e.Kind {
		case event.AuditDrawn:
			asked[at] = e.Segment
		case event.AuditPassed:
			if answered++; e.Segment != asked[at] {
				t.Errorf("unit %d of round %d is audited to segment %d, and passed to %d", e.Unit, e.Round, asked[at], e.Segment)
			}
		}
	}
	if answered == 0 {
		t.Error("nothing is audited")
	}
}

// A seal of the state at the end is none of the state at a drawn boundary.
func TestSealOfAnotherSegment(t *testing.T) {
	g := begin(t, drawn(), newMembers(3, 2))
	g.toAudits()
	i := slices.IndexFunc(g.s.Units, func(u *work.Unit) bool { return u.Segment > 0 })
	u := g.s.Units[i]
	whole := *u
	whole.Segment = 0
	g.must(func(s State) (State, []event.Event, error) { return pass(s, g.env(), 0, whole) })
	g.tick(2)
	if err := g.do(func(s State) (State, []event.Event, error) {
		return unseal(s, g.env(), 0,
			g.unit(0, uint32(i)))
	}); codeOf(err) != "bad_opening" {
		t.Errorf("the state at the end answers an audit of segment %d: %v", u.Segment, err)
	}
}

// A verifier that audits up to a segment is not slashed for a fault that was planted after it, and is for one before
// it.
func TestPlantBehindTheSegment(t *testing.T) {
	nonce := nonce(0, 1)
	for segment := uint32(1); segment < 4; segment++ {
		g := begin(t, drawn(), newMembers(3, 2))
		g.plant()
		c := commitment(g.lap(0), 1)
		at := slices.IndexFunc(audit.Plant(nonce, c.Segments),
			func(d canon.Digest) bool { return !slices.Contains(c.Segments, d) })
		g.s.Units[1].Segment = segment
		g.pass(g.s.Units[1].Verifier, 0, 1)
		g.unmask(0, 1)
		u := g.unit(0, 1)
		if at <= int(segment) {
			if u.Status != work.Auditing || g.count(event.AuditBroken) != 1 {
				t.Errorf("planted at %d, passed to segment %d: %+v", at, segment, u)
			}
			continue
		}
		if u.Status != work.Accepted || !u.Passed || g.count(event.AuditBroken) != 0 ||
			!g.s.Unmasked(work.UnitID{Unit: 1, Attempt: u.Attempt}) {
			t.Errorf("planted at %d, passed to segment %d: %+v", at, segment, u)
		}
	}
}

// A conviction has all units of the convicted worker audited to their end, also those that passed a partial audit.
func TestConvictionAuditsWholeUnits(t *testing.T) {
	few := drawn()
	few.Deadlines.Challenge = 100
	g := begin(t, few, newMembers(2, 2))
	g.round()
	g.passAll()
	g.toAudits()
	liar := g.s.Units[0].Worker
	g.challenge("v1", 1, 0)
	g.verdict(1, 0, true)
	mine := g.s.Open[0].Where(func(u work.Unit) bool { return u.Worker == liar })
	if len(mine) == 0 {
		t.Fatal("nothing to see")
	}
	for _, u := range mine {
		if u.Status != work.Auditing || u.Segment != 0 {
			t.Errorf("unit %d of a liar is audited to segment %d, status %d", u.Index, u.Segment, u.Status)
		}
	}
}
