package bundle

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/run/terms"
)

// A member reads a job before it works, and takes no part in one whose disputes cannot be played.
func TestJobThatCannotBeDisputedIsRefused(t *testing.T) {
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2,
		"n_positions": 8,
		"vocab_size":  32})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	m := data.Manifest{Vocab: 32, Width: 2, TrainTokens: 1000, ShardTokens: 1000, Shards: make([]canon.Digest, 1)}
	read := func(p *program.Program) error {
		s := &train.Spec{
			Version: 1, Numerics: kernel.Version1, Program: p.Digest(), Data: m.Digest(), Rounds: 1, Steps: 1, Segment: 1,
			Units: 1, Batch: 2, Length: 8,
			Rate: train.Rate{Kind: train.Constant, Peak: 0.1}, Beta1: 0.9, Beta2: 0.95,
			Exchange: train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1},
		}
		j := &Job{Bundle: Bundle{Spec: s.Encode(), Shards: []string{"shard"}}, terms: terms.Terms{
			Spec: s.Digest(), Rounds: 1, Units: 1, Segments: 1, UnitFlops: p.Flops(), Genesis: terms.Checkpoint{Root: s.Genesis},
		}}
		if err := j.decode(p.Encode(), m.Encode()); err != nil {
			return err
		}
		if least := cpu.Memory(step, 1) + MaxHeld*int64(j.sizes().model); j.Memory(1) <= least || j.Memory(1) > 64<<20 {
			t.Errorf("%d bytes of memory, the program and the checkpoints have %d", j.Memory(1), least)
		}
		small := j.Memory(1)
		j.Data.TrainTokens += 1 << 40
		if more := j.Memory(1) - small; more < ShardMemory || more > 2*ShardMemory {
			t.Errorf("a corpus of 2 TiB takes %d bytes of memory more", more)
		}
		return nil
	}
	if err := read(step); err != nil {
		t.Fatal(err)
	}
	bad := *step
	bad.Ops = append(slices.Clone(step.Ops),
		program.Operator{Kind: program.Iota, Out: tensor.Make(tensor.Float32, 1<<20), Ints: []int64{0}},
		program.Operator{Kind: program.FirstMax, Out: tensor.Make(tensor.Bool, 1<<20), In: []int32{int32(len(step.Ops))},
			Ints: []int64{0}})
	if err := read(&bad); !errors.Is(err, ErrUndecidable) {
		t.Errorf("read with %v", err)
	}
}
