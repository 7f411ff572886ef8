package verify

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/hold"
)

// answers are what the units of some rounds have drawn, of each round in order of units.
type answers struct {
	of       map[uint32][][]*tensor.Tensor
	policies map[uint32]*train.Checkpoint // of rounds before the first that is verified
}

// policies reports whether a verification may begin with a checkpoint: whether those are stored with which the answers
// were drawn that the rounds after it learn from.
func (v *verification) policies(ctx context.Context, round uint32) bool {
	s := v.b.Spec
	if s.Rollout == nil {
		return true
	}
	v.drawn.policies = map[uint32]*train.Checkpoint{}
	for r := s.Apart().Policy(round); r < round; r++ {
		v.drawn.policies[r] = v.b.Genesis
		if r == 0 {
			continue
		}
		c, err := bundle.LoadCheckpointEach(ctx, v.lines[r-1].AsCheckpoint(), v.store.Get, checkpoint.InTurn, v.room())
		if err != nil {
			return false
		}
		v.drawn.policies[r] = c
	}
	return true
}

// draw draws the answers that the round after a checkpoint learns from, unless that is done, and those that its own
// units draw.
func (v *verification) draw(ctx context.Context, base *train.Checkpoint) error {
	s := v.b.Spec
	if s.Rollout == nil {
		return nil
	}
	if policy := s.Apart().Policy(base.Round); policy < base.Round && v.drawn.of[policy] == nil {
		if err := v.drawBy(ctx, v.drawn.policies[policy]); err != nil {
			return err
		}
	}
	if !s.Apart().Draw(base.Round) {
		return nil
	}
	return v.drawBy(ctx, base)
}

// drawBy draws the answers of a round that starts from a checkpoint.
func (v *verification) drawBy(ctx context.Context, base *train.Checkpoint) error {
	s := v.b.Spec
	all := make([][]*tensor.Tensor, s.Apart().Drawing())
	g, working := errgroup.WithContext(ctx)
	for i := range all {
		g.Go(func() (err error) {
			task := <-v.tasks
			defer func() { v.tasks <- task }()
			all[i], err = task.Draw(base, s.Units+uint32(i), func(train.Progress) error { return working.Err() })
			for k := range all[i] { // the rest of the state is not needed
				all[i][k] = all[i][k].Clone()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if v.drawn.of == nil {
		v.drawn.of = map[uint32][][]*tensor.Tensor{}
	}
	v.drawn.of[base.Round] = all
	for round := range v.drawn.of {
		if round+s.Rollout.Staleness < base.Round {
			delete(v.drawn.of, round)
		}
	}
	return nil
}

// best is the number of the model of a checkpoint that is the model of the job.
func (v *verification) best(last *train.Checkpoint) (int, error) {
	if v.b.Spec.Exchange.Policies == 0 {
		return 0, nil
	}
	eval, err := cpu.Compile(v.b.Eval, kernel.Cores)
	if err != nil {
		return 0, err
	}
	return measured.Best(v.b, eval, last)
}

// given are the answers that a unit of a round learns from.
func (v *verification) given(round, unit uint32) *hold.Tensors {
	s := v.b.Spec
	var from []*tensor.Tensor
	for _, k := range s.Apart().ReadsAll(unit) {
		from = append(from, v.drawn.of[s.Apart().Policy(round)][k-s.Units]...)
	}
	return hold.Put(nil, from)
}
