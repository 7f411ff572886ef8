package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// sized are terms of five rounds whose units have 4, 3, 2 and 1 segments.
func sized() terms.Terms {
	t := long()
	t.Sizes = []uint32{4, 3, 2, 1}
	return t
}

// cut makes a commitment one to a unit of its size.
func cut(c work.Commitment, t terms.Terms, l work.RoundState, unit uint32) work.Commitment {
	right, n := commitment(l, unit).Segments, nonce(l.Round, unit)
	is := slices.Equal(c.Segments, audit.Plant(n, right))
	right = right[:t.SegmentsOf(unit)+1]
	if c.Segments, c.HiddenRoots = right, audit.Hide(n, right); is {
		c.Segments = audit.Plant(n, right)
	}
	return c
}

// A size is for a unit each, in segments of equal operations, and the largest is whole.
func TestSizesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*terms.Terms){
		"too few":       func(t *terms.Terms) { t.Sizes = t.Sizes[1:] },
		"none":          func(t *terms.Terms) { t.Sizes = []uint32{} },
		"no segment":    func(t *terms.Terms) { t.Sizes[1] = 0 },
		"nobody whole":  func(t *terms.Terms) { t.Sizes[0] = 3 },
		"more than all": func(t *terms.Terms) { t.Sizes[0] = 5 },
		"parts of one":  func(t *terms.Terms) { t.UnitFlops = 1001 },
	} {
		terms := sized()
		if err := terms.Validate(); err != nil {
			t.Fatal(err)
		}
		if spoil(&terms); terms.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	terms := sized()
	for unit := range terms.Units {
		if want := terms.UnitFlops / 4 * uint64(4-unit); terms.FlopsOf(unit) != want {
			t.Errorf("unit %d has %d operations, want %d", unit, terms.FlopsOf(unit), want)
		}
	}
	if got, want := terms.RoundFlops(), terms.UnitFlops*10/4; got != want {
		t.Errorf("a round has %d operations, want %d", got, want)
	}
	if terms.UnitFlops = 1 << 63; terms.RoundFlops() != 1<<64-1 {
		t.Error("more operations than can be counted")
	}
}

// take brings a unit to its commitment after so many blocks.
func (g *stage) take(unit uint32, blocks int64) {
	g.t.Helper()
	u := g.s.Units[unit]
	g.height = u.AssignedAt + blocks
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), u.Worker, work.UnitID{Unit: unit, Round: s.Round, Attempt: u.Attempt},
			cut(commitment(s.RoundState, unit), s.Terms, s.RoundState, unit))
	})
}

// A worker that was measured on a unit of any size is dealt a unit that fits its speed, with a deadline for that size.
func TestUnitsOfDifferentSizesAreDealtBySpeed(t *testing.T) {
	g := begin(t, sized(), newMembers(4, 1))
	g.deal(0)
	pace := map[string]int64{"w0": 10, "w1": 40, "w2": 20, "w3": 13} // blocks for a whole unit
	order := []int{0, 1, 2, 3}
	slices.SortFunc(order, func(a, b int) int { // in the order in which they are done
		blocks := func(i int) int64 { return pace[g.s.Units[i].Worker] * int64(g.s.Terms.SegmentsOf(uint32(i))) }
		return int(blocks(a) - blocks(b))
	})
	wrong := g.s.Units[order[0]]
	if err := g.do(func(s State) (State, []event.Event, error) {
		c := cut(commitment(s.RoundState, wrong.Index), s.Terms, s.RoundState, (wrong.Index+1)%4)
		return s.Commit(g.env(), wrong.Worker, work.UnitID{Unit: wrong.Index, Attempt: wrong.Attempt}, c)
	}); !errors.Is(err, refusal.ErrBadCommitment) {
		t.Errorf("a commitment to a unit of another size: %v", err)
	}
	for _, i := range order {
		u := g.s.Units[i]
		g.take(u.Index, (pace[u.Worker]*int64(g.s.Terms.SegmentsOf(u.Index))+3)/4)
		m, _ := g.s.Member(u.Worker)
		if got := int64(m.Speed+255) >> 8; got < pace[u.Worker] || got > pace[u.Worker]+4 {
			t.Errorf("%s takes %d blocks for a whole unit, measured on %d segments: %d/256", u.Worker, pace[u.Worker],
				g.s.Terms.SegmentsOf(u.Index), m.Speed)
		}
	}
	g.height++
	g.attestAll()
	g.deal(1)
	for i, want := range []string{"w0", "w3", "w2", "w1"} {
		if u := g.s.Units[i]; u.Worker != want {
			t.Errorf("unit %d of %d segments goes to %s, want %s", i, g.s.Terms.SegmentsOf(u.Index), u.Worker, want)
		}
	}
	whole, part := g.s.Units[0].Deadline, g.s.Units[3].Deadline
	if whole-g.s.Since != g.s.TrainDeadline() || part-g.s.Since != (g.s.TrainDeadline()+3)/4+terms.MinBlocks {
		t.Errorf("of %d blocks a whole unit has %d and a quarter %d", g.s.TrainDeadline(), whole-g.s.Since, part-g.s.Since)
	}
}

// A unit that is taken from its worker goes to the worker that finishes it first, after its own units.
func TestLateUnitsGoToWhoIsDoneFirst(t *testing.T) {
	g := begin(t, sized(), newMembers(4, 1))
	for i, blocks := range []uint32{10, 13, 20, 40} {
		g.s.Members[slices.IndexFunc(g.s.Members,
			func(m crew.Member) bool { return m.ID == fmt.Sprintf("w%d", i) })].Speed = blocks << 8
	}
	g.deal(0)
	if u := g.s.Units[0]; u.Worker != "w0" {
		t.Fatalf("the whole unit goes to %s", u.Worker)
	}
	// w3 has nothing left to do, and is slow: w1 with 3 and 4 segments is done after 91 quarters, w3 with 4 after 160
	g.take(3, 10)
	g.must(func(s State) (State, []event.Event, error) { return s.Leave(g.env(), "w0") })
	if u := g.s.Units[0]; u.Worker != "w1" {
		t.Errorf("the whole unit of who left goes to %s", u.Worker)
	}
}
