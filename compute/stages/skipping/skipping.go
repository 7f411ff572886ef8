// Package skipping makes the step of a model whose microbatches leave out stages, as compute/stages/paths says. It
// computes nothing.
package skipping

import (
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/paths"
)

// Step is the step of a task on a model in n stages, of which each of some microbatches leaves out a share, and the
// groups of layers before which it is to be cut. Stages that fewer microbatches pass hold more layers. costs are those
// of the step whose microbatches pass all. The error wraps paths.ErrShare, stages.ErrCut or model.ErrStep.
func Step(c architecture.Config, t model.Task, o optimizer.Optimizer, costs []stages.Cost, n, micro int,
	share float64) (*program.Program, []int, error) {
	p, err := paths.Of(n, micro, share)
	if err != nil {
		return nil, nil, err
	}
	before, err := stages.Balance(costs, p.Passed())
	if err != nil {
		return nil, nil, err
	}
	if t, err = t.Leaving(c, p.Layers(before)); err != nil {
		return nil, nil, err
	}
	step, err := t.TrainStep(o)
	return step, before, err
}
