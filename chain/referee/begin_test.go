package referee

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// starter says that it began with a state that it did not begin with.
type starter struct {
	*Witness
	root canon.Digest
}

func (s starter) Steps(after []uint64) ([]canon.Digest, error) {
	out, err := s.Witness.Steps(after)
	for i, n := range after {
		if n == 0 {
			out[i] = s.root
		}
	}
	return out, err
}

// replicas are jobs whose units begin from what was handed on to them.
func replicas(t *testing.T, plain *train.Task) map[string]*train.Task {
	all := map[string]*train.Task{}
	for name, x := range map[string]train.Exchange{
		"random elements": {Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9, Pick: 32, Carry: 4},
		"fragments":       {Codec: codec.E3M0, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9, Fragments: 2, Carry: 4},
		"overlap":         {Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9, Overlap: 0.75, Carry: 4},
		"late fragments":  {Codec: codec.E3M0, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9, Fragments: 2, Overlap: 0.75, Carry: 4},
		"pairs":           {Codec: codec.BFloat16, Rule: aggregate.Mean, Outer: outer.Pairs, Rate: 0.7, Momentum: 0.5, Pairs: 2, Topology: "complete"},
	} {
		all[name] = respecified(plain, func(s *train.Spec) { s.Exchange = x })
		if err := all[name].Spec.Check(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Where units are replicas, who lies about what one begins with, about its update, or about what it hands on loses, whichever
// tensor the lie is in and whether it is exchanged in the round, and who does not wins.
func TestReplicas(t *testing.T) {
	plain, start := job(t, tiny)
	for name, task := range replicas(t, plain) {
		base, below := *start, train.Zeros(start.Params, 1)[0]
		for i, x := range below {
			kernel.NormalTo(x.F32(), 4, uint64(i))
		}
		from, paired := below, task.Spec.Exchange.Pairs > 0
		if paired { // its place is in the checkpoint
			from, base.Outer = nil, train.Zeros(start.Params, 4)
			base.Outer[train.PairState*unit] = below
		}
		witness := func(at []*tensor.Tensor) *Witness {
			if !paired {
				return NewWitness(task, &base, unit, at, shardTokens)
			}
			elsewhere := base
			elsewhere.Outer = slices.Clone(base.Outer)
			elsewhere.Outer[train.PairState*unit] = at
			return NewWitness(task, &elsewhere, unit, nil, shardTokens)
		}
		honest := witness(below)
		right := roots(t, honest, honest)
		u, on, err := outer.Commit(task.Spec, base.Names, base.Round, unit, result(t, task, &base, from), from)
		if err != nil || u.Root() != right.Update || !paired && train.CarriedRoot(train.Roots(on)) != right.Carried.Root {
			t.Fatalf("%s: a witness and a worker make other results: %v", name, err)
		}
		r, err := Open(task.Spec.Digest(), Opening(task.Spec, task.Step))
		if err != nil {
			t.Fatal(err)
		}
		var leaf dispute.Claim
		var payload []byte
		spy := judge{r, func(c dispute.Claim, p []byte) { leaf, payload = c, p }}
		play := func(c run.Commitment, segment uint32, asserter, challenger dispute.Oracle) dispute.Game {
			d := duty(&base, c)
			if paired {
				d.Commit.Carried = run.Carried{}
			} else {
				d.From = make([]run.Carried, unit+1)
				d.From[unit].Root = train.CarriedRoot(train.Roots(from))
			}
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
				if ruling, err := r.Judge(leaf, bad); !errors.Is(err, ErrPayload) {
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
		last := uint32(len(right.Segments))
		for index := range base.Names {
			for k, segment := range map[dispute.Kind]uint32{dispute.Update: last, dispute.Carry: last + 1} {
				if k == dispute.Carry && (paired || index > 1 && index < len(base.Names)-1) {
					continue
				}
				liar := twister{honest, k, index}
				caught(string(k), k, play(roots(t, honest, liar), segment, liar, witness(below)))
				acquitted(string(k), play(right, segment, honest, twister{witness(below), k, index}))
			}
		}
		other := slices.Clone(below)
		other[0] = below[0].Clone()
		other[0].F32()[1500] += 1
		liar := witness(other)
		caught("another beginning", dispute.Start, play(roots(t, liar, liar), 0, liar, witness(below)))
		acquitted("its beginning", play(right, 0, honest, witness(other)))
		hidden := starter{witness(other), right.Segments[0]}
		lie := roots(t, hidden.Witness, hidden)
		lie.Segments[0] = right.Segments[0]
		caught("another beginning than it says", dispute.Tile, play(lie, 1, hidden, witness(below)))
		if leaf.Step != 0 || leaf.Part != 1 {
			t.Errorf("%s: the question is about step %d, part %d", name, leaf.Step, leaf.Part)
		}
		acquitted("what it began with", play(right, 1, honest, starter{witness(other), right.Segments[0]}))
	}
}
