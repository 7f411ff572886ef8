package referee

import (
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// attestedRound is a round of a job: its checkpoint, the updates of its units, and what they lead to.
type attestedRound struct {
	*train.Task
	base, next *train.Checkpoint
	updates    []*update.Update
	deltas     [][]*tensor.Tensor
	claim      work.Combination // of next
}

func roundOf(t testing.TB, z size, x train.Exchange) attestedRound {
	t.Helper()
	task, base := job(t, z)
	spec := *task.Spec
	spec.Exchange, spec.Units = x, 3
	task.Spec = &spec
	base, err := outer.Genesis(x, base.Names, named(base))
	if err != nil {
		t.Fatal(err)
	}
	base.Round = 2
	for k, list := range base.Outer {
		list = clones(list)
		base.Outer[k] = list
		for i, o := range list {
			philox.NormalTo(o.F32(), 7, uint64(100*k+i))
			for j, v := range o.F32() {
				o.F32()[j] = v * v
			}
		}
	}
	r := attestedRound{Task: task, base: base}
	for u := range spec.Units {
		var delta []*tensor.Tensor
		for i, p := range base.Params {
			d := tensor.New(p.Shape)
			philox.NormalTo(d.F32(), uint64(11+u), uint64(i))
			delta = append(delta, d)
		}
		packed, err := update.Pack(x.Codec, base.Round, u, delta)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := outer.Unpack(&spec, base, base.Round, u, packed.Root(), packed.Encode())
		if err != nil {
			t.Fatal(err)
		}
		r.updates, r.deltas = append(r.updates, packed), append(r.deltas, restored)
	}
	if r.next, err = outer.Advance(&spec, base, r.deltas); err != nil {
		t.Fatal(err)
	}
	r.claim = r.attests(r.next)
	return r
}

func named(c *train.Checkpoint) map[string]*tensor.Tensor {
	params := map[string]*tensor.Tensor{}
	for i, n := range c.Names {
		params[n] = c.Params[i]
	}
	return params
}

// attests is the claim that a checkpoint comes out of the round.
func (r attestedRound) attests(next *train.Checkpoint) work.Combination {
	units := make(work.Units, len(r.updates))
	for i, u := range r.updates {
		units[i] = &work.Unit{Index: uint32(i), Commit: work.Commitment{Update: u.Root()}}
	}
	l := work.RoundState{
		Round: r.base.Round,
		Base:  terms.Checkpoint{Round: r.base.Round, Root: r.base.Root()},
		Units: units,
	}
	return l.Combination(terms.Checkpoint{Round: next.Round, Root: next.Root()})
}

func (r attestedRound) referee() *Referee { return newReferee(r.Spec, r.Step) }

// spoiled is the next checkpoint with a change in one element of one tensor.
func (r attestedRound) spoiled(at, element int) *train.Checkpoint {
	c := &train.Checkpoint{Round: r.next.Round, Names: r.next.Names}
	for i, x := range r.next.Tensors() {
		x = x.Clone()
		if i == at {
			x.F32()[element] += 1
		}
		if i < len(c.Names) {
			c.Params = append(c.Params, x)
			continue
		}
		if i%len(c.Names) == 0 {
			c.Outer = append(c.Outer, nil)
		}
		c.Outer[len(c.Outer)-1] = append(c.Outer[len(c.Outer)-1], x)
	}
	return c
}

var combined = []train.Exchange{
	{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
	{Codec: codec.Float32, Rule: aggregate.Median, Outer: outer.SGD, Rate: 0.5},
	{Codec: codec.E3M0, Rule: aggregate.TrimmedMean, Trim: 0.2, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
	{Codec: codec.Sign, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
	{Codec: codec.TopKName(82, 8), Rule: aggregate.Contributors, Outer: outer.SGD, Rate: 1},
	{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1, Policies: 3},
	{Codec: codec.BFloat16, Rule: aggregate.Mean, Outer: outer.Adam, Rate: 0.01, Momentum: 0.9, Decay: 0.99, Eps: 1e-3},
}

// refutation is what shows that an attested checkpoint is not the one that the updates lead to.
func (r attestedRound) refutation(wrong *train.Checkpoint) ([]byte, error) {
	return witness.Refutation(r.Spec, r.base, r.next, wrong, len(r.updates),
		func(i int) (*update.Update, error) { return r.updates[i], nil })
}

// One element of one tensor of an attested checkpoint that its updates do not lead to is shown by the tile that it lies
// in, for every kind of exchange of which a tile follows from tiles.
func TestWrongCheckpointIsRefuted(t *testing.T) {
	for _, x := range combined {
		t.Run(fmt.Sprint(x.Codec, " ", x.Rule, " ", x.Outer), func(t *testing.T) {
			r := roundOf(t, size{layers: 1, width: 48, heads: 2, batch: 2, length: 8, steps: 7, segment: 3}, x)
			if err := refutable(r.Spec, r.Step); err != nil {
				t.Fatal(err)
			}
			tensors := r.next.Tensors()
			for _, at := range []int{0, len(r.base.Names) / 2, len(r.base.Names) - 1, len(tensors) - 1} {
				for _, element := range []int{0, tensors[at].Shape.Elements() - 1} {
					wrong := r.spoiled(at, element)
					payload, err := r.refutation(wrong)
					if err != nil {
						t.Fatal(err)
					}
					if most := refutationBytes(r.Spec, r.base.Params[at%len(r.base.Names)].Shape, len(r.base.Names),
						len(r.base.Outer)); len(payload) > most {
						t.Errorf("a payload of %d bytes, bounded by %d", len(payload), most)
					}
					what, err := r.referee().Refute(r.attests(wrong), payload)
					if err != nil {
						t.Errorf("tensor %d, element %d: %v", at, element, err)
					}
					if what == "" {
						t.Error("it does not say what is shown")
					}
				}
			}
		})
	}
}

// Nothing that anybody can send refutes the checkpoint that the updates lead to.
func TestRightCheckpointIsNotRefuted(t *testing.T) {
	r := roundOf(t, tiny, combined[0])
	if _, err := r.refutation(r.next); !errors.Is(err, evidence.ErrPayload) {
		t.Errorf("a refutation of a right checkpoint: %v", err)
	}
	wrong := r.spoiled(3, 5)
	payload, err := r.refutation(wrong)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, c work.Combination, b []byte) {
		t.Helper()
		if _, err := r.referee().Refute(c, b); !errors.Is(err, evidence.ErrPayload) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("the leaves of another checkpoint", r.claim, payload)
	refused("nothing", r.attests(wrong), nil)
	refused("more than is taken", r.attests(wrong), make([]byte, evidence.MaxRefutation+1))
	var p evidence.Combination
	change := func(what string, do func(*evidence.Combination)) {
		t.Helper()
		if err := canon.Unmarshal(payload, &p); err != nil {
			t.Fatal(err)
		}
		do(&p)
		refused(what, r.attests(wrong), canon.MustMarshal(p))
		p = evidence.Combination{}
	}
	change("no such tensor", func(p *evidence.Combination) { p.Tensor = 1 << 30 })
	change("no such tile", func(p *evidence.Combination) { p.Tile = 1 << 31 })
	change("another tensor", func(p *evidence.Combination) { p.Tensor++ })
	change("other roots of the base", func(p *evidence.Combination) { p.Base[0][0]++ })
	change("other roots of the next", func(p *evidence.Combination) { p.Next[0][0]++ })
	change("another element of the base", func(p *evidence.Combination) { p.Before[0].Bytes[0]++ })
	change("another element of the attested checkpoint", func(p *evidence.Combination) { p.After.Bytes[0]++ })
	change("less of the base", func(p *evidence.Combination) { p.Before = p.Before[1:] })
	change("another update", func(p *evidence.Combination) { p.Updates[0].Proof.Bytes[0]++ })
	change("one update twice", func(p *evidence.Combination) { p.Updates[0] = p.Updates[1] })
	change("one update less", func(p *evidence.Combination) { p.Updates = p.Updates[1:] })
	change("another place in the update", func(p *evidence.Combination) { p.Updates[0].Cover = nil })
}

// A round whose tiles do not follow from tiles alone cannot be refuted: the error says why.
func TestRoundsThatCannotBeRefuted(t *testing.T) {
	r := roundOf(t, tiny, combined[0])
	spec := *r.Spec
	spec.Exchange.Rule = aggregate.Krum
	if err := refutable(&spec, r.Step); !errors.Is(err, slice.ErrRule) {
		t.Errorf("a rule that looks at whole updates: %v", err)
	}
	if _, err := newReferee(&spec, r.Step).Refute(r.claim, nil); !errors.Is(err, evidence.ErrPayload) {
		t.Errorf("a rule that looks at whole updates: %v", err)
	}
	spec = *r.Spec
	spec.Exchange.Codec, spec.Units = codec.Float32, 1000
	large, err := architecture.Parse(architecture.GPT2,
		map[string]any{"n_layer": 1, "n_embd": 128, "n_head": 2, "n_positions": 8, "vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(large, adamw, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := refutable(&spec, step); !errors.Is(err, evidence.ErrTooLarge) {
		t.Errorf("a thousand whole updates: %v", err)
	}
}

func FuzzRefute(f *testing.F) {
	r := roundOf(f, tiny, combined[0])
	wrong := r.spoiled(3, 5)
	payload, err := r.refutation(wrong)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	judge := r.referee()
	f.Fuzz(func(t *testing.T, b []byte) {
		if what, err := judge.Refute(r.claim, b); err == nil {
			t.Errorf("the right checkpoint is refuted: %s", what)
		}
	})
}

// refutable reports why a wrong checkpoint of a job could not be shown to be wrong by one tile: its rule of aggregation
// looks at whole updates, or a tile of all its updates is larger than MaxRefutation.
func refutable(s *train.Spec, p *program.Program) error {
	if err := slice.Check(s.Exchange); err != nil {
		return err
	}
	names := train.Params(p)
	state, err := outer.State(s.Exchange)
	if err != nil {
		return err
	}
	for _, n := range names {
		if size := refutationBytes(s, parameter.Shape(p, n), len(names), state); size > evidence.MaxRefutation {
			return fmt.Errorf("%w: a tile of %q in the updates of %d units needs %d bytes, at most %d are taken",
				evidence.ErrTooLarge, n, s.Units, size, evidence.MaxRefutation)
		}
	}
	return nil
}

// refutationBytes bounds the payload of a refutation about a parameter of this shape.
func refutationBytes(s *train.Spec, shape tensor.Shape, names, state int) int {
	const path = 5 * (canon.Fanout - 1) * evidence.DigestBytes // the cover of a run of leaves, at most
	each, err := codec.Tile(s.Exchange.Codec, shape)
	if err != nil {
		return evidence.MaxRefutation + 1
	}
	c, _ := codec.ByName(s.Exchange.Codec)
	tile := tensor.Make(tensor.Float32, each)
	sent := min(codec.Size(c, shape), codec.Size(c, tile)+2*tensor.LeafBytes)
	return 2*(1+state)*names*evidence.DigestBytes + (2+state)*(tile.Bytes()+path) + int(s.Units)*(sent+2*path)
}
