package stages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train/parts"
)

// Stages that do not wait for each other compute forwards of later steps before they have the gradients of earlier
// ones. The weights that a forward reads are those before a fixed number of updates, of which the stage keeps the
// values; its backward reads the same. So a step of a stage is still a function of its state and of the values that it
// receives.

// Late is the number of updates by which the gradients of the first stage are late; 0: every stage waits for the
// gradients of a step before it begins the next.
func (p *Plan) Late() (steps int) {
	for _, s := range p.Stages {
		steps = max(steps, s.Late)
	}
	return steps
}

// Ahead is how many microbatches a stage may compute forwards of before the backward of the first of them, in a model
// whose first stage is late by some steps of micro microbatches: fewer, the later the stage is.
func Ahead(late, micro, stages, stage int) int {
	return (late*micro*(stages-1-stage) + stages - 2) / (stages - 1)
}

// LateOf is the number of updates by which the gradients of a stage are late in such a model.
func LateOf(late, micro, stages, stage int) int {
	return (Ahead(late, micro, stages, stage) + micro - 1) / micro
}

// Aheads are the microbatches of Ahead by stage; where no stage is late, as many as there are stages after it.
func (p *Plan) Aheads() []int {
	all, late := make([]int, len(p.Stages)), p.Late()
	for s := range all {
		if all[s] = len(p.Stages) - 1 - s; late > 0 {
			all[s] = Ahead(late, p.Micro, len(p.Stages), s)
		}
	}
	return all
}

// Orders are those in which the stages compute the tasks of a step.
func (p *Plan) Orders() [][]order.Task {
	n := len(p.Stages)
	takes, most, skips := make([]int64, n), make([]int, n), false
	for s := range p.Stages {
		skips = skips || p.Left(s) > 0
	}
	if !skips {
		return order.Ordered(p.Tasks(), p.Micro, p.Aheads())
	}
	for s, st := range p.Stages {
		most[s] = 2*n - 2 - s
		if i := slices.IndexFunc(st.Pieces, func(p Piece) bool { return p.Phase == order.Forward }); i >= 0 {
			takes[s] = int64(st.Pieces[i].Program.Flops())
		}
	}
	return order.Early(p.Tasks(), p.Waits(), takes, most)
}

// Continued are the tasks of a number of steps of a stage, in the order in which it computes them.
func (p *Plan) Continued(stage int, tasks []order.Task, steps uint32) []order.InStep {
	if p.Late() == 0 {
		return order.Repeated(tasks, steps)
	}
	return order.Continuous(tasks, p.Aheads()[stage], steps)
}

// Timed is when each stage ends a number of steps, as order.Timed has it. The places that takes and travels are asked
// for have the tasks of one step.
func (p *Plan) Timed(steps uint32, takes func(order.Place) float64,
	travels func(from, to order.Place) float64) ([]float64, error) {
	var lists [][]order.Task
	for s, tasks := range p.Orders() {
		lists = append(lists, order.Unrolled(p.Continued(s, tasks, steps)))
	}
	of := func(at order.Place) order.Place { return order.Place{Stage: at.Stage, Task: order.OfStep(at.Task)} }
	return order.Timed(lists, order.UnrolledWaits(p.Waits(), steps),
		func(at order.Place) float64 { return takes(of(at)) },
		func(from, to order.Place) float64 { return travels(of(from), of(to)) })
}

// checkLate sets Stage.Late of each stage. It reports why stages are not late by the rule of LateOf: a stage is late by
// another number of steps, breaks a rule of checkReads, or exchanges a value with another in the update.
func (p *Plan) checkLate() error {
	for s := range p.Stages {
		for _, n := range p.Stages[s].State {
			if k, _, ok := optimizer.EarlierOf(n); ok {
				p.Stages[s].Late = max(p.Stages[s].Late, k)
			}
		}
	}
	late := p.Late()
	if late == 0 {
		return nil
	}
	for s := range p.Stages {
		if want := LateOf(late, p.Micro, len(p.Stages), s); p.Stages[s].Late != want {
			return fmt.Errorf("gradients of stage %d are late by %d steps, wanted %d", s, p.Stages[s].Late, want)
		}
		if err := p.checkReads(s, p.Stages[s].Late); err != nil {
			return err
		}
	}
	for _, t := range p.Transfers {
		if t.After.Phase == order.Update {
			return fmt.Errorf("stages %d and %d, which are late, exchange a value in the update", t.From, t.To)
		}
	}
	return nil
}

// checkKept reports a weight before k updates whose next value is not the weight before k-1 updates: a stage that is
// ahead of its state reads the younger one in its place.
func checkKept(p *program.Program) error {
	for _, o := range p.Outputs {
		k, of, ok := optimizer.EarlierOf(o.Name)
		younger := optimizer.EarlierName(k-1, of)
		if k == 1 {
			younger = optimizer.Param + of
		}
		if op := &p.Ops[o.Value]; ok && (op.Kind != program.Input || op.Name != younger) {
			return fmt.Errorf("the next value of %q is not that of %q", o.Name, younger)
		}
	}
	return nil
}

// checkReads reports why a stage is not late by a number of steps: it keeps no copy of a weight before some updates, a
// forward, or a task that sends weights, reads a weight of another age, or a task before the last backward makes a
// tensor of the state.
func (p *Plan) checkReads(stage, late int) error {
	st := &p.Stages[stage]
	made := map[string]bool{}
	for _, o := range st.Whole.Outputs {
		made[o.Name] = true
	}
	for _, n := range st.State {
		w, weight := strings.CutPrefix(n, parts.Param)
		for k := 1; weight && made[n] && k <= late; k++ {
			if !slices.Contains(st.State, optimizer.EarlierName(k, w)) {
				return fmt.Errorf("stage %d keeps no %q", stage, optimizer.EarlierName(k, w))
			}
		}
	}
	for _, piece := range st.Pieces {
		last := piece.Phase == order.Update || piece.Task == order.Task{Phase: order.Backward, Number: p.Micro - 1}
		for _, n := range piece.Out {
			if late > 0 && !last && slices.Contains(st.State, n) {
				return fmt.Errorf("%v of stage %d makes %q, before the last backward", piece.Task, stage, n)
			}
		}
		if piece.Phase != order.Forward && piece.Phase != order.Weights || late == 0 {
			continue
		}
		for _, n := range piece.In {
			if k, _, ok := optimizer.EarlierOf(n); made[n] && slices.Contains(st.State, n) && (!ok || k != late) {
				return fmt.Errorf("%v of stage %d, which is late by %d steps, reads %q", piece.Task, stage, late, n)
			}
		}
	}
	return nil
}

// Shared is when each stage of a number of replicas ends a number of steps, as order.Shared has it: on has the machine
// of stage s of N of replica r at r*N+s, which is also its place. The places that takes and travels are asked for have
// the tasks of one step.
func (p *Plan) Shared(steps uint32, on []int, takes func(order.Place) float64,
	travels func(from, to order.Place) float64) ([]float64, error) {
	n := len(p.Stages)
	lists, waits := make([][]order.Task, len(on)), make([]map[order.Task][]order.Place, len(on))
	orders, single := p.Orders(), order.UnrolledWaits(p.Waits(), steps)
	for i := range on {
		s := i % n
		lists[i], waits[i] = order.Unrolled(p.Continued(s, orders[s], steps)), map[order.Task][]order.Place{}
		for t, from := range single[s] {
			for _, at := range from {
				waits[i][t] = append(waits[i][t], order.Place{Stage: i - s + at.Stage, Task: at.Task})
			}
		}
	}
	of := func(at order.Place) order.Place { return order.Place{Stage: at.Stage, Task: order.OfStep(at.Task)} }
	return order.Shared(lists, waits, on, func(at order.Place) float64 { return takes(of(at)) },
		func(from, to order.Place) float64 { return travels(of(from), of(to)) })
}
