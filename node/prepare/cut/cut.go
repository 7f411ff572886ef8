// Package cut divides the step of a job into the stages that its file asks for, and says what each of them has to do.
package cut

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/asynchronous"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/stages/skipping"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/prepare/strategy"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Before returns the step of a task for the schedule that the job asks for, and the groups of layers before which it is
// cut. The given step is that of stages that wait for each other. The error is a *problem.ErrorList.
func Before(j *job.Job, c architecture.Config, t model.Task, step *program.Program) (*program.Program, []int, error) {
	costs, err := stages.Costs(step)
	if err != nil {
		return nil, nil, refuse(j, err)
	}
	p, o := j.Parallel, strategy.Optimizer(j.Spec)
	before, err := stages.Balance(costs, slices.Repeat([]int{1}, p.Stages))
	switch {
	case err != nil:
	case p.Late():
		step, err = asynchronous.Step(t, o, step, before, p.Delay)
	case p.Skip > 0:
		step, before, err = skipping.Step(c, t, o, costs, p.Stages, p.Microbatches, p.Skip)
	}
	if err != nil {
		return nil, nil, refuse(j, err)
	}
	return step, before, nil
}

// Files are those of a model that say which layers microbatches left out: none, or one.
func Files(j *job.Job, s *train.Spec) map[string][]byte {
	if j.Parallel.Skip == 0 || s.Pipeline == nil {
		return nil
	}
	layers, err := left.Of(j.Parallel.Microbatches, j.Parallel.Skip, s.Pipeline.Cuts())
	if err != nil {
		return nil // the job would not have been cut
	}
	return map[string][]byte{left.File: layers.JSON()}
}

// refuse is the refusal of a job whose model cannot be cut as it asks.
func refuse(j *job.Job, err error) error {
	at, fix := "parallel.stages", "lower stages"
	if j.Parallel.Skip > 0 {
		fix = "lower stages or skip"
	}
	if errors.Is(err, stages.ErrCut) && j.Parallel.Stages <= 2 {
		at, fix = "parallel", "remove parallel"
	}
	return j.Refuse(at, problem.BadValue, "the model cannot be cut so", err, fix)
}

// Into makes the units of a specification stages of replicas, if the job asks for it. The step is cut before some
// groups. The error is a *problem.ErrorList.
func Into(j *job.Job, step *program.Program, before []int, s *train.Spec) error {
	if !j.Parallel.On() {
		return nil
	}
	plan, err := stages.Cut(step, before)
	if err != nil {
		return refuse(j, err)
	}
	s.Pipeline = &replica.Pipeline{Stage: train.StageOfParams(plan, train.Params(step))}
	for _, b := range before {
		s.Pipeline.Before = append(s.Pipeline.Before, uint32(b))
	}
	s.Units, s.Segment = uint32(j.Parallel.Stages*j.Parallel.Replicas), 1
	return nil
}

// Terms are those of an order with the stages of its work.
func Terms(t terms.Terms, s *train.Spec, step *program.Program) (terms.Terms, error) {
	if s.Pipeline == nil {
		return t, nil
	}
	var err error
	if t.Pipeline, err = referee.Pipeline(s, step); err == nil {
		t.UnitFlops = slices.Max(t.Pipeline.Flops)
	}
	return t, err
}

// Stage is what one stage of a job has to do.
type Stage struct {
	Layers      string  `json:"layers"`         // groups of layers: the first and the last, or one
	StateBytes  int64   `json:"state_bytes"`    // weights and moments
	MemoryBytes int64   `json:"memory_bytes"`   // that a step takes
	SendBytes   int64   `json:"send_bytes"`     // in a step, to all others
	TakeBytes   int64   `json:"take_bytes"`     // in a step, from all others
	Flops       float64 `json:"flops"`          // of a step
	Waits       float64 `json:"waits"`          // share of a unit, if tasks take time by their operations
	Late        int     `json:"late,omitempty"` // steps by which its gradients are late
	Left        int     `json:"left,omitempty"` // microbatches of a step that leave it out
}

// Stages are those of a step; nil: it is not cut.
func Stages(s *train.Spec, step *program.Program) ([]Stage, error) {
	if s.Pipeline == nil {
		return nil, nil
	}
	plan, err := stages.Cut(step, s.Pipeline.Cuts())
	if err != nil {
		return nil, err
	}
	groups, err := stages.Groups(step)
	if err != nil {
		return nil, err
	}
	orders := plan.Orders()
	flops := map[order.Place]float64{}
	for k, st := range plan.Stages {
		for _, p := range st.Pieces {
			flops[order.Place{Stage: k, Task: p.Task}] = float64(p.Program.Flops())
		}
	}
	takes := func(at order.Place) float64 { return flops[at] }
	steps := s.Steps
	if plan.Late() == 0 {
		steps = 1 // each waits for the one before
	}
	ends, err := plan.Timed(steps, takes, func(_, _ order.Place) float64 { return 0 })
	if err != nil {
		return nil, err
	}
	bounds := append(append([]int{0}, s.Pipeline.Cuts()...), len(groups))
	var list []Stage
	for k, st := range plan.Stages {
		one := Stage{Layers: layers(bounds[k], bounds[k+1], len(groups)), Flops: float64(st.Whole.Flops()), Late: st.Late,
			Left: plan.Left(k)}
		shapes, state := st.Whole.InputShapes(), []*tensor.Tensor(nil)
		for _, n := range st.State {
			one.StateBytes += int64(shapes[n].Bytes())
			state = append(state, &tensor.Tensor{Shape: shapes[n]})
		}
		of, err := pass.New(plan, k, orders[k], state, 1)
		if err != nil {
			return nil, err
		}
		one.MemoryBytes = of.Bytes()
		for to := range plan.Stages {
			one.SendBytes += plan.Bytes(k, to)
			one.TakeBytes += plan.Bytes(to, k)
		}
		var works float64
		for _, t := range orders[k] {
			works += takes(order.Place{Stage: k, Task: t})
		}
		if end := slices.Max(ends); end > 0 {
			one.Waits = 1 - works*float64(steps)/end
		}
		list = append(list, one)
	}
	return list, nil
}

// Pipeline is how a step is cut, as the folder of a run has it; nil: it is not.
func Pipeline(s *train.Spec, step *program.Program) (*api.Pipeline, error) {
	list, err := Stages(s, step)
	if err != nil || list == nil {
		return nil, err
	}
	p := &api.Pipeline{Replicas: int(s.Units / s.Pipeline.Stages())}
	for _, x := range list {
		p.Stages = append(p.Stages, api.Stage{Layers: x.Layers, StateBytes: uint64(x.StateBytes), Busy: 1 - x.Waits,
			Late: x.Late, SentBytes: uint64(x.SendBytes), ReceivedBytes: uint64(x.TakeBytes)})
	}
	return p, nil
}

// layers names groups of layers, from one up to another: embeddings come before layer 0, and the output after the last.
func layers(from, to, groups int) string {
	name := func(g int) string {
		switch g {
		case 0:
			return "embeddings"
		case groups - 1:
			return "output"
		}
		return fmt.Sprintf("layer %d", g-1)
	}
	if to-from == 1 {
		return name(from)
	}
	return name(from) + " to " + name(to-1)
}
