package referee

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
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

// starter says that it began with a state that it did not begin with.
type starter struct {
	*witness.Witness
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

// court plays disputes about lies of a unit, and sees that they end as they must.
type court struct {
	t       *testing.T
	name    string // of the job
	task    *train.Task
	referee *Referee
	duty    func(lie work.Commitment) work.AuditTarget
	leaf    dispute.Claim // the last question
	payload []byte        // and what was brought to it
}

func newCourt(t *testing.T, name string, task *train.Task, duty func(lie work.Commitment) work.AuditTarget) *court {
	t.Helper()
	r, err := Open(task.Spec.Digest(), Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)), 0)
	if err != nil {
		t.Fatal(err)
	}
	return &court{t: t, name: name, task: task, referee: r, duty: duty}
}

func (c *court) play(lie work.Commitment, segment uint32, asserter, challenger dispute.Oracle) dispute.Dispute {
	c.t.Helper()
	spy := judge{c.referee, func(leaf dispute.Claim, p []byte) { c.leaf, c.payload = leaf, p }}
	return playDuty(c.t, c.task, c.duty(lie), segment, asserter, challenger, spy)
}

// caught reports a liar that was not caught by a question of this kind, and payloads with a changed byte that are
// taken.
func (c *court) caught(what string, kind dispute.Kind, g dispute.Dispute) {
	c.t.Helper()
	if !g.Verdict.AsserterLies || g.Verdict.Reason != dispute.Recomputed || g.Verdict.Leaf != string(kind) {
		c.t.Errorf("%s: %s: %+v", c.name, what, *g.Verdict)
	}
	for i := 0; i < len(c.payload); i += 1 + len(c.payload)/61 {
		bad := slices.Clone(c.payload)
		bad[i] ^= 0x10
		if ruling, err := c.referee.Judge(c.leaf, bad); !errors.Is(err, evidence.ErrPayload) {
			c.t.Errorf("%s: %s: byte %d of %d changed: %+v, %v", c.name, what, i, len(c.payload), ruling, err)
		}
	}
}

func (c *court) acquitted(what string, g dispute.Dispute) {
	c.t.Helper()
	if g.Verdict.AsserterLies {
		c.t.Errorf("%s: an honest worker lost about %s: %+v", c.name, what, *g.Verdict)
	}
}

// replicas are jobs whose units begin from a carried state.
func replicas(t *testing.T, plain *train.Task) map[string]*train.Task {
	all := map[string]*train.Task{}
	for name, x := range map[string]train.Exchange{
		"random elements": {Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9,
			SampleEvery: 32, Carry: 4},
		"fragments": {Codec: codec.E3M0, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9,
			Fragments: 2, Carry: 4},
		"overlap": {Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9,
			Overlap: 0.75, Carry: 4},
		"late fragments": {Codec: codec.E3M0, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9,
			Fragments: 2, Overlap: 0.75, Carry: 4},
		"pairs": {Codec: codec.BFloat16, Rule: aggregate.Mean, Outer: outer.PairwiseGossip, Rate: 0.7, Momentum: 0.5,
			Pairs: 2, Topology: "complete"},
	} {
		all[name] = respecified(plain, func(s *train.Spec) { s.Exchange = x })
		if err := all[name].Spec.Check(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// In a job of replicas, a party loses its dispute if it lies about the state that a unit begins with, about the update
// or about the state that the unit leaves to the next round, in any tensor, exchanged in the round or not. An honest
// party wins.
func TestReplicas(t *testing.T) {
	plain, start := job(t, tiny)
	for name, task := range replicas(t, plain) {
		if always := name == "late fragments" || name == "pairs"; !always && !*long {
			continue
		}
		base, below := *start, train.Zeros(start.Params, 1)[0]
		for i, x := range below {
			philox.NormalTo(x.F32(), 4, uint64(i))
		}
		from, paired := below, task.Spec.Exchange.Pairs > 0
		if paired { // its place is in the checkpoint
			from, base.Outer = nil, train.Zeros(start.Params, 4)
			base.Outer[train.PairState*unit] = below
		}
		witness := func(at []*tensor.Tensor) *witness.Witness {
			if !paired {
				return witness.New(task, &base, unit, at, shardTokens)
			}
			elsewhere := base
			elsewhere.Outer = slices.Clone(base.Outer)
			elsewhere.Outer[train.PairState*unit] = at
			return witness.New(task, &elsewhere, unit, nil, shardTokens)
		}
		honest := witness(below)
		right := roots(t, task, honest, honest)
		u, on, err := outer.Commit(task.Spec, base.Names, base.Round, unit, result(t, task, &base, from), from)
		if err != nil || u.Root() != right.Update || !paired && train.CarriedRoot(train.Roots(on)) != right.HandedState.Root {
			t.Fatalf("%s: a witness and a worker make other results: %v", name, err)
		}
		c := newCourt(t, name, task, func(lie work.Commitment) work.AuditTarget {
			d := duty(&base, lie)
			if paired {
				d.Commit.HandedState = work.HandedState{}
			} else {
				d.From = make([]work.HandedState, unit+1)
				d.From[unit].Root = train.CarriedRoot(train.Roots(from))
			}
			return d
		})
		last := uint32(len(right.Segments))
		for index := range base.Names {
			for k, segment := range map[dispute.Kind]uint32{dispute.Update: last, dispute.Carry: last + 1} {
				if k == dispute.Carry && (paired || index > 1 && index < len(base.Names)-1) {
					continue
				}
				liar := twister{honest, k, index}
				c.caught(string(k), k, c.play(roots(t, task, honest, liar), segment, liar, witness(below)))
				c.acquitted(string(k), c.play(right, segment, honest, twister{witness(below), k, index}))
			}
		}
		other := slices.Clone(below)
		other[0] = below[0].Clone()
		other[0].F32()[1500] += 1
		liar := witness(other)
		c.caught("another beginning", dispute.Start, c.play(roots(t, task, liar, liar), 0, liar, witness(below)))
		c.acquitted("its beginning", c.play(right, 0, honest, witness(other)))
		hidden := starter{witness(other), right.Segments[0]}
		lie := roots(t, task, hidden.Witness, hidden)
		lie.Segments[0] = right.Segments[0]
		c.caught("another beginning than it says", dispute.Tile, c.play(lie, 1, hidden, witness(below)))
		if c.leaf.Step != 0 || c.leaf.Part != 1 {
			t.Errorf("%s: the question is about step %d, part %d", name, c.leaf.Step, c.leaf.Part)
		}
		c.acquitted("what it began with", c.play(right, 1, honest, starter{witness(other), right.Segments[0]}))
	}
}
