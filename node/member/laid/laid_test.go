package laid

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// budget is a number of bytes, those that are reserved, and the most that were.
type budget struct{ has, taken, most int64 }

var errShort = errors.New("short")

func (b *budget) Reserve(_ string, need int64) error {
	if need > b.has {
		return errShort
	}
	b.taken, b.most = need, need
	return nil
}

func (b *budget) Release(string) { b.taken = 0 }

// planned is a job of two stages, or one that is not cut.
func planned(t *testing.T, cut bool) *bundle.Job {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 2, "n_embd": 16, "n_head": 2,
		"n_positions": 8, "vocab_size": 64, "tie_word_embeddings": false})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	s := &train.Spec{Units: 2, Steps: 1, Batch: 2, Length: 8, Rounds: 1,
		Exchange: train.Exchange{Codec: codec.Float32, Outer: outer.SGD}}
	if cut {
		plan, err := stages.Cut(step, []int{2})
		if err != nil {
			t.Fatal(err)
		}
		s.Pipeline = &replica.Pipeline{Before: []uint32{2}, Stage: train.StageOfParams(plan, train.Params(step))}
	}
	return bundle.Planned(s, step, data.Manifest{Width: 2, TrainTokens: 1000, ShardTokens: 1000})
}

// A job in stages takes the memory of a stage and the disk for the rest, if there is as much, and else all of it in
// memory. Any other job takes what it took before.
func TestRoomOfAStage(t *testing.T) {
	const plenty = 1 << 40
	cut, whole := planned(t, true), planned(t, false)
	blobs := cut.Footprint(2)
	stage, err := cut.StageMemory(1, false)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := cut.StageMemory(1, true)
	if err != nil || verifier <= stage {
		t.Fatal(verifier, stage, err)
	}
	for name, c := range map[string]struct {
		job          *bundle.Job
		role         crew.Role
		disk, memory int64 // that there are
		wanted       int64 // of memory; 0: there is too little
		laid, shared bool
	}{
		"a stage":                        {cut, crew.Worker, plenty, stage, stage, true, false},
		"a verifier of stages":           {cut, crew.Verifier, plenty, plenty, verifier, true, false},
		"no memory for a stage":          {cut, crew.Worker, plenty, stage - 1, 0, true, false},
		"no disk for the other stages":   {cut, crew.Worker, blobs, plenty, cut.Memory(1), false, false},
		"neither":                        {cut, crew.Worker, blobs, stage, 0, false, false},
		"parties that share what is put": {cut, crew.Worker, plenty, plenty, cut.Memory(1), false, true},
		"not cut":                        {whole, crew.Worker, plenty, plenty, whole.Memory(1), false, false},
	} {
		store, err := quota.New(t.Context(), blob.NewMemory(), plenty)
		if err != nil {
			t.Fatal(err)
		}
		disk, ram := &budget{has: c.disk}, &budget{has: c.memory}
		h := engine.Holding{Aside: memory.Aside{Reserve: func(int64) (func(), error) { return nil, errShort }}}
		if c.shared {
			h.Shared = hold.NewShared(1)
		}
		ctx, end := context.WithCancel(t.Context())
		got, giveBack, err := Room{Job: "job", Disk: disk, Memory: ram, Store: store, Keep: 2}.Take(ctx, c.job,
			crew.Member{Role: c.role}, 1, h)
		if (err == nil) != (c.wanted > 0) || ram.taken != c.wanted {
			t.Errorf("%s: %d bytes of memory, wanted %d: %v", name, ram.taken, c.wanted, err)
		}
		more := int64(0)
		if c.laid {
			more = c.job.Aside()
		}
		if blobs := c.job.Footprint(2); disk.most != blobs+more {
			t.Errorf("%s: %d bytes of disk, wanted %d and %d", name, disk.most, blobs, more)
		}
		if free := got.Aside.(memory.Aside).Reserve == nil; free != c.laid {
			t.Errorf("%s: what is put aside is promised: %v", name, free)
		}
		if err == nil {
			if free, err := store.Reserve(ctx, plenty-more/2); err == nil {
				if free(); more > 0 {
					t.Errorf("%s: the store has room that it has promised", name)
				}
			}
			giveBack()
		}
		if free, err := store.Reserve(ctx, plenty-1<<20); err != nil || disk.taken+ram.taken > 0 {
			t.Errorf("%s: %d bytes of disk and %d of memory are not given back: %v", name, disk.taken, ram.taken, err)
		} else {
			free()
		}
		end()
	}
}
