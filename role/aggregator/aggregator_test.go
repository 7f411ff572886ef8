package aggregator

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// A member that combined the updates of a round to another checkpoint than the attested one refutes it, also in a run
// whose rounds have units that draw and have no update.
func TestRefutesWithUnitsThatDraw(t *testing.T) {
	name := func(round uint32, what string) terms.Checkpoint {
		return terms.Checkpoint{Round: round, Root: canon.Sum(what), CID: what}
	}
	base, right, wrong := name(0, "base"), name(1, "right"), name(1, "wrong")
	units := work.Units{{Index: 0, Status: work.Accepted, Worker: "w", Commit: work.Commitment{UpdateCID: "update"}},
		{Index: 1, Status: work.Accepted, Worker: "w", Draws: true}}
	var s run.State
	s.Phase, s.RoundState = progress.Attest, work.RoundState{Base: base, Units: units}
	g := New("v")
	g.Note(role.Block{Height: 1, Run: s})
	g.Note(role.Advanced{Action: role.Advance{Base: base, Units: s.Sent()}, Next: right})
	s.Phase, s.Open = progress.Train, []work.RoundState{s.RoundState}
	s.RoundState = work.RoundState{Round: 1, Base: wrong}
	g.Note(role.Block{Height: 2, Run: s})
	refutes := func(a role.Action) bool {
		r, is := a.(role.Refute)
		return is && r.Wrong == wrong && r.Base == base && len(r.Units) == 1
	}
	if got := g.Duties(s); !slices.ContainsFunc(got, refutes) {
		t.Errorf("%+v", got)
	}
}
