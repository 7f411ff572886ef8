package pass_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/paths"
)

// leaving is a job whose microbatches leave out a share of its n stages.
func leaving(t testing.TB, j job, b model.Batch, o optimizer.Optimizer, n int, share float64) (job, *stages.Plan,
	paths.Paths) {
	t.Helper()
	costs, err := stages.Costs(j.step)
	if err != nil {
		t.Fatal(err)
	}
	p, err := paths.Of(n, b.Sequences/b.Micro, share)
	if err != nil {
		t.Fatal(err)
	}
	before, err := stages.Balance(costs, p.Passed())
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.LanguageOf(j.config, b)
	if err == nil {
		task, err = task.Leaving(j.config, p.Layers(before))
	}
	if err != nil {
		t.Fatal(err)
	}
	step, err := task.TrainStep(o)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := stages.Cut(step, before)
	if err != nil {
		t.Fatal(err)
	}
	return job{j.config, step}, plan, p
}

// Stages that microbatches leave out compute nothing of them, and all stages have the bits of the step that is not cut.
func TestStagesThatAreLeftOut(t *testing.T) {
	four := model.Batch{Sequences: 4, Length: 11, Micro: 1}
	six := model.Batch{Sequences: 6, Length: 11, Micro: 1}
	dropped := model.Batch{Sequences: 4, Length: 11, Micro: 1, Dropout: 0.2}
	for name, c := range map[string]struct {
		job    job
		batch  model.Batch
		stages int
		share  float64
	}{
		"gpt2":          {gpt2(t, 6, false, four, adam(1)), four, 4, 0.25},
		"gpt2, tied":    {gpt2(t, 6, true, four, adam(0.1)), four, 4, 0.25},
		"gpt2, dropout": {gpt2(t, 6, true, dropped, adam(0.1)), dropped, 4, 0.25},
		"llama":         {llama(t, 14, six, adam(0.1)), six, 6, 1.0 / 3},
		"three stages":  {llama(t, 8, four, adam(0.1)), four, 3, 0.25},
		"adapters":      {adapted(t, 6, four, adam(1)), four, 4, 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			const steps = 3
			j, plan, p := leaving(t, c.job, c.batch, adam(0.5), c.stages, c.share)
			for s := range plan.Stages {
				if n := order.InFlight(plan.Orders()[s]); n > 2*c.stages-2-s {
					t.Errorf("stage %d has %d microbatches at a time", s, n)
				}
			}
			for k, left := range p.Left {
				for s := range plan.Stages {
					for _, phase := range []order.Phase{order.Forward, order.Backward} {
						has := slices.Contains(plan.Tasks()[s], order.Task{Phase: phase, Number: k})
						if has == slices.Contains(left, s) {
							t.Errorf("stage %d computes %c of microbatch %d, which leaves out %v: %t", s, " WFB"[phase], k, left, has)
						}
					}
				}
			}
			want, wantLosses := j.whole(t, steps)
			got, losses, errs := j.inStages(t, plan, steps, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for name, x := range want {
				if got[name] == nil || got[name].Root() != x.Root() {
					t.Errorf("%q has other bits", name)
				}
			}
			if !slices.Equal(losses, wantLosses) {
				t.Errorf("losses and norms %v, wanted %v", losses, wantLosses)
			}
		})
	}
}

// A way that does not fit to a model is refused.
func TestWaysThatAreNoWays(t *testing.T) {
	b := model.Batch{Sequences: 2, Length: 11, Micro: 1}
	j := gpt2(t, 3, false, b, adam(1))
	task, err := model.LanguageOf(j.config, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range [][][]int{{{1}}, {{1}, {3}}, {{1}, {-1}}, {{1, 2}, {1}}, {{0, 1, 2}, {}}} {
		if _, err := task.Leaving(j.config, left); !errors.Is(err, model.ErrStep) {
			t.Error(fmt.Errorf("%v: %w", left, err))
		}
	}
}
