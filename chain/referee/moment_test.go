package referee

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// Where the moments of the inner optimizer last, who lies about those that it begins with or about those that it hands on loses,
// whatever else is handed on, and who does not wins.
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
		from := slices.Concat(train.Zeros(base.Params, x.HandsOn())...)
		for i, s := range from {
			kernel.NormalTo(s.F32(), 4, uint64(i))
			for k, v := range s.F32() {
				s.F32()[k] = v * v * 1e-3 // second moments are not negative
			}
		}
		witness := func(from []*tensor.Tensor) *Witness { return NewWitness(task, &base, unit, from, shardTokens) }
		honest := witness(from)
		right := roots(t, honest, honest)
		r, err := task.Run(&base, unit, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, on, err := outer.Commit(task.Spec, base.Names, base.Round, unit, r, from)
		if err != nil || u.Root() != right.Update || train.CarriedRoot(train.Roots(on)) != right.Carried.Root || !slices.Equal(r.Segments, right.Segments) {
			t.Fatalf("%s: a witness and a worker make other results: %v", name, err)
		}
		referee, err := Open(task.Spec.Digest(), Opening(task.Spec, task.Step))
		if err != nil {
			t.Fatal(err)
		}
		var leaf dispute.Claim
		var payload []byte
		spy := judge{referee, func(c dispute.Claim, p []byte) { leaf, payload = c, p }}
		play := func(c run.Commitment, segment uint32, asserter, challenger dispute.Oracle) dispute.Game {
			d := duty(&base, c)
			d.From = make([]run.Carried, unit+1)
			d.From[unit].Root = train.CarriedRoot(train.Roots(from))
			return playDuty(t, task, d, segment, asserter, challenger, spy)
		}
		caught := func(what string, kind dispute.Kind, g dispute.Game) {
			t.Helper()
			if !g.Verdict.AsserterLies || g.Verdict.Reason != dispute.Recomputed || g.Verdict.Leaf != string(kind) {
				t.Errorf("%s: %s: %+v", name, what, *g.Verdict)
			}
			for i := 0; i < len(payload); i += 1 + len(payload)/61 {
				bad := slices.Clone(payload)
				bad[i] ^= 0x10
				if ruling, err := referee.Judge(leaf, bad); !errors.Is(err, ErrPayload) {
					t.Errorf("%s: %s: byte %d of %d changed: %+v, %v", name, what, i, len(payload), ruling, err)
				}
			}
		}
		acquitted := func(what string, g dispute.Game) {
			t.Helper()
			if g.Verdict.AsserterLies {
				t.Errorf("%s: an honest worker lost about %s: %+v", name, what, *g.Verdict)
			}
		}
		last, n := uint32(len(right.Segments)), len(base.Names)
		for _, index := range []int{0, n - 1, n, len(from) - n, len(from) - 1} {
			what := fmt.Sprintf("tensor %d that is handed on", index)
			liar := twister{honest, dispute.Carry, index}
			caught(what, dispute.Carry, play(roots(t, honest, liar), last+1, liar, witness(from)))
			acquitted(what, play(right, last+1, honest, twister{witness(from), dispute.Carry, index}))
		}
		liar := twister{honest, dispute.Update, 0}
		caught("its update", dispute.Update, play(roots(t, honest, liar), last, liar, witness(from)))
		for at, moment := range map[string]int{"first": len(from) - 2*n, "second": len(from) - n} {
			other := slices.Clone(from)
			other[moment] = from[moment].Clone()
			other[moment].F32()[5] += 1
			liar := witness(other)
			caught("other "+at+" moments", dispute.Start, play(roots(t, liar, liar), 0, liar, witness(from)))
			acquitted("its moments", play(right, 0, honest, witness(other)))
			hidden := starter{witness(other), right.Segments[0]}
			lie := roots(t, hidden.Witness, hidden)
			lie.Segments[0] = right.Segments[0]
			caught("other "+at+" moments than it says", dispute.Tile, play(lie, 1, hidden, witness(from)))
			acquitted("what it began with", play(right, 1, honest, starter{witness(other), right.Segments[0]}))
		}
		anew := witness(nil)
		caught("moments of zero", dispute.Start, play(roots(t, anew, anew), 0, anew, witness(from)))
	}
}
