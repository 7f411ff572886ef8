package pipeline

import (
	"slices"

	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/role/pipeline"
)

// restart has a stage stop before it sends the second frame of a phase in the second step, and begin that step again
// once all others wait for it. It lost what it computed, and the messages on their way. The values that it had received
// in the steps before, and the messages of the step, come from its neighbours, which compute nothing again.
func (j *job) restart(stage int, phase order.Phase, a *Attacks) error {
	stops := order.Task{Phase: phase, Number: 1}
	if !j.sends(stage, stops) || j.plan.Late() > 0 { // such a replica begins its round again
		return nil
	}
	a.Restarts++
	const step = 1
	var p played
	h := newHub(len(j.plan.Stages))
	h.log, h.words = map[[2]int][]sent{}, map[[2]int]uint32{}
	h.restart = func() {
		h.ended--
		for other := range j.plan.Stages {
			delete(h.queues, [2]int{stage, other})
			at := [2]int{other, stage}
			h.queues[at] = nil
			for _, m := range h.log[at] {
				if m.step >= step {
					h.queues[at] = append(h.queues[at], m.bytes)
				}
			}
		}
		p.all.Go(func() {
			defer h.end()
			p.results[stage], p.errs[stage] = j.resume(&p, stage, step, h)
		})
	}
	j.playAt(h, &p, nil, func(from, _ int, m *pipeline.Message) bool {
		return from != stage || m.Frame == nil || m.Frame.Step != step || m.Frame.Task != stops
	}, true)
	want, err := j.task.Run(j.base, unit, nil, nil)
	if err != nil {
		return err
	}
	right := true
	for s := range j.plan.Stages {
		if p.errs[s] != nil {
			return p.errs[s]
		}
		mine, err := j.again(&p, s)
		if err != nil {
			return err
		}
		right = right && slices.Equal(mine, p.results[s].Segments)
		for i, x := range p.results[s].End {
			at := slices.Index(train.StateNames(j.task.Step), j.plan.Stages[s].State[i])
			right = right && want.End[at].Root() == x.Root()
		}
	}
	if right {
		a.Resumed++
	}
	return nil
}

// resume computes the unit of a stage from a step on.
func (j *job) resume(p *played, stage int, step uint32, h *hub) (*pipeline.Result, error) {
	task, base, err := j.alone(p, j.plan, stage)
	if err != nil {
		return nil, err
	}
	r, err := task.RunTo(base, unit, step, nil, nil)
	if err != nil {
		return nil, err
	}
	own := j.plan.Stages[stage].State
	state, names := r.End[:len(own)], train.StateNames(task.Step)
	for i, n := range own {
		state[i] = r.End[slices.Index(names, n)]
	}
	u := j.unit(p, j.plan, stage, &line{hub: h, plan: j.plan, stage: stage}, true)
	return u.Resume(r.Segments, state, p.exchanged[stage][step-1])
}
