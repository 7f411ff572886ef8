package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/routing"
	"github.com/starling-network/starling/node/benchmark/sentences"
)

// Late is a model whose stages do not wait for each other between steps, and how it compares with one whose stages do.
type Late struct {
	Delay     int     `json:"delay"` // steps by which the first stage is late; 0: stages wait for each other
	Corrected bool    `json:"corrected"`
	Steps     int     `json:"steps"`
	Loss      float64 `json:"loss"` // mean of the last tenth of the steps, nats a token
	Gap       float64 `json:"gap"`  // by which it is above that of stages that wait
	Differ    int     `json:"differ"`
	InFlight  int     `json:"in_flight"` // microbatches that the first stage has at a time
	State     float64 `json:"state"`     // bytes of weights and moments of the first stage, of those where stages wait
	// by Pace: its throughput, as a multiple of that of stages that wait
	Faster []float64 `json:"faster"`
}

// Pace is the time that a stage takes for a microbatch.
type Pace struct {
	Milliseconds float64 `json:"ms"`   // forward and backward, which takes twice as long
	Busy         float64 `json:"busy"` // share of the time in which stages that wait for each other compute
}

// The stages of the compared schedules, the latency of their links, and the steps of a round.
const (
	lateStages = 4
	latency    = 100.0 // milliseconds from one stage to another
	lateSteps  = 64    // at the begin of a round no frame is under way
)

// paces are the times of a microbatch in milliseconds for which Late.Faster is computed.
var paces = []float64{30, 75, 150, 300, 1200}

// barPace is the place in paces of the one that has a bar.
const barPace = 2

// lateModel is the model that is compared.
var lateModel = size{family: "llama", layers: 4, width: 64, length: 32, sequences: 16, microbatch: 2}

// lates trains one model by each schedule, in one program, and compares a few steps of it with those in stages.
func lates(ctx context.Context, steps, threads int) (list []Late, at []Pace, err error) {
	var waits []float64
	state := int64(0)
	for i, c := range []Late{{}, {Delay: 1, Corrected: true}, {Delay: 1}, {Delay: 4, Corrected: true}, {Delay: 4},
		{Delay: 2, Corrected: true}} {
		z := lateModel
		z.text, z.late, z.uncorrected = sentences.Ended(20000), c.Delay, !c.Corrected
		z.steps = min(steps, 6)
		cut, err := compare(z, lateStages, threads)
		if err != nil {
			return nil, nil, err
		}
		z.steps = steps
		j, err := newJob(z, lateStages, threads)
		if err != nil {
			return nil, nil, err
		}
		r, err := j.task.Run(j.base, unit, nil, nil)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, nil, err
		}
		c.Steps, c.Differ, c.InFlight = steps, cut.Differ, cut.InFlight
		last := r.Losses[len(r.Losses)-max(1, steps/10):]
		for _, l := range last {
			c.Loss += float64(l) / float64(len(last))
		}
		for k, ms := range paces {
			end, err := j.length(ms)
			if err != nil {
				return nil, nil, err
			}
			if i == 0 {
				waits = append(waits, end)
				at = append(at, Pace{ms, benchmark.Rounded(ms*float64(j.plan.Micro*lateSteps)/end, 3)})
			}
			c.Faster = append(c.Faster, benchmark.Rounded(waits[k]/end, 3))
		}
		own := j.held(0)
		if i == 0 {
			state = own
		}
		c.State = benchmark.Rounded(float64(own)/float64(state), 3)
		list = append(list, c)
	}
	for i := range list {
		list[i].Gap = benchmark.Rounded(list[i].Loss/list[0].Loss-1, 4)
	}
	for i := range list {
		list[i].Loss = benchmark.Rounded(list[i].Loss, 4)
	}
	return list, at, nil
}

// length is the time of a round of all stages, in milliseconds, if each takes ms for a microbatch: the exact length of
// its schedule. Tasks after the last backward take no time, and their messages do.
func (j *job) length(ms float64) (float64, error) {
	ends, err := j.plan.Timed(lateSteps, func(at order.Place) float64 {
		switch at.Task.Phase {
		case order.Forward:
			return ms / 3
		case order.Backward:
			return 2 * ms / 3
		}
		return 0
	}, func(_, _ order.Place) float64 { return latency })
	if err != nil {
		return 0, err
	}
	return slices.Max(ends), nil
}

// inFlight is the most microbatches of which the first stage has computed the forward and not yet the backward.
func (j *job) inFlight(tasks []order.Task) int {
	var list []order.Task
	for _, t := range j.plan.Continued(0, tasks, uint32(j.plan.Late())+2) {
		list = append(list, t.Task)
	}
	return order.InFlight(list)
}

// held is the bytes of the state of a stage.
func (j *job) held(stage int) (n int64) {
	shapes := j.plan.Stages[stage].Whole.InputShapes()
	for _, name := range j.plan.Stages[stage].State {
		n += int64(shapes[name].Bytes())
	}
	return n
}

// routed makes the step whose stages are dealt to workers of unequal speed.
func routed(threads int) func(late int) (*stages.Plan, error) {
	return func(late int) (*stages.Plan, error) {
		j, err := newJob(size{family: "llama", layers: 7, width: 32, length: 16, sequences: 8, microbatch: 1,
			steps: routing.Steps, late: late}, routing.Stages, threads)
		if err != nil {
			return nil, err
		}
		return j.plan, nil
	}
}
