package referee

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/work"
)

// Where the moments of the inner optimizer are carried to the next round, a party that lies about its first or its last
// moments loses, whatever else is carried. An honest party wins.
func TestMomentsThatLast(t *testing.T) {
	plain, start := job(t, tiny)
	for name, x := range map[string]train.Exchange{
		"alone":     {Codec: codec.Int8},
		"feedback":  {Codec: codec.TopKName(82, 2), Feedback: 0.95},
		"fragments": {Codec: codec.E3M0, Fragments: 2},
		"overlap":   {Codec: codec.Int8, Overlap: 0.75},
	} {
		x.Rule, x.Outer, x.Rate, x.Carry, x.Moments = aggregate.Mean, outer.SGD, 1, 4, true
		task := respecified(plain, func(s *train.Spec) { s.Exchange = x })
		if err := task.Spec.Check(); err != nil {
			t.Fatal(err)
		}
		base := *start
		base.Outer, base.Round = nil, 1
		var from []*tensor.Tensor
		for _, shape := range train.HandedShapes(x, task.Step) {
			from = append(from, tensor.New(shape))
		}
		for i, s := range from {
			philox.NormalTo(s.F32(), 4, uint64(i))
			for k, v := range s.F32() {
				s.F32()[k] = v * v * 1e-3 // second moments are not negative
			}
		}
		witness := func(from []*tensor.Tensor) *witness.Witness { return witness.New(task, &base, unit, from, shardTokens) }
		honest := witness(from)
		right := roots(t, task, honest, honest)
		r, err := task.Run(&base, unit, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, on, err := outer.Commit(task.Spec, base.Names, base.Round, unit, r, from)
		if err != nil || u.Root() != right.Update || train.CarriedRoot(train.Roots(on)) != right.HandedState.Root ||
			!slices.Equal(r.Segments, right.Segments) {
			t.Fatalf("%s: a witness and a worker make other results: %v", name, err)
		}
		c := newCourt(t, name, task, func(lie work.Commitment) work.AuditTarget {
			d := duty(&base, lie)
			d.From = make([]work.HandedState, unit+1)
			d.From[unit].Root = train.CarriedRoot(train.Roots(from))
			return d
		})
		last, n := uint32(len(right.Segments)), len(base.Names)
		for _, index := range []int{0, n - 1, n, len(from) - n, len(from) - 1} {
			what := fmt.Sprintf("carried tensor %d", index)
			liar := twister{honest, dispute.Carry, index}
			c.caught(what, dispute.Carry, c.play(roots(t, task, honest, liar), last+1, liar, witness(from)))
			c.acquitted(what, c.play(right, last+1, honest, twister{witness(from), dispute.Carry, index}))
		}
		liar := twister{honest, dispute.Update, 0}
		c.caught("its update", dispute.Update, c.play(roots(t, task, honest, liar), last, liar, witness(from)))
		for at, moment := range map[string]int{"first": len(from) - 2*n, "second": len(from) - n} {
			other := slices.Clone(from)
			other[moment] = from[moment].Clone()
			other[moment].F32()[5] += 1
			liar := witness(other)
			c.caught("other "+at+" moments", dispute.Start, c.play(roots(t, task, liar, liar), 0, liar, witness(from)))
			c.acquitted("its moments", c.play(right, 0, honest, witness(other)))
			hidden := starter{witness(other), right.Segments[0]}
			lie := roots(t, task, hidden.Witness, hidden)
			lie.Segments[0] = right.Segments[0]
			c.caught("other "+at+" moments than it says", dispute.Tile, c.play(lie, 1, hidden, witness(from)))
			c.acquitted("what it began with", c.play(right, 1, honest, starter{witness(other), right.Segments[0]}))
		}
		anew := witness(nil)
		c.caught("moments of zero", dispute.Start, c.play(roots(t, task, anew, anew), 0, anew, witness(from)))
	}
}
