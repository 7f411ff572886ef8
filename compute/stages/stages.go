// Package stages cuts the program of a training step into stages, each of which holds a part of the layers of a model,
// their gradients and what the optimizer remembers of them. No operator is changed, and each is computed in one stage,
// so a step in stages has the bits of the program that was cut.
//
// A stage computes its part of a step in tasks: of every microbatch one forward and one backward, then the update. A
// task is a program of its own. Values that one stage makes and another reads are declared as transfers. Package order
// holds the order in which a stage computes its tasks, and package pass computes them. This package computes nothing.
package stages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// ErrCut is wrapped by every reason why a program cannot be cut as asked.
var ErrCut = errors.New("stages: the step cannot be cut")

// Prefixes of names in the programs of tasks, before the number of a value in the program that was cut.
const (
	Exchanged = parts.Exchanged // inputs that another stage has sent, and outputs that are sent
	Kept      = "k/"            // outputs of a task that a later task of the stage reads
)

// Rows is the prefix of the names of microbatches, before their first row of the tokens.
const Rows = "t/"

// Transfer is a value that one stage makes and another reads, once a step.
type Transfer struct {
	Value    int32 // of the program that was cut
	From, To int
	After    order.Task // of the stage From, which makes it
	Shape    tensor.Shape
}

// Name is the name of the value in the programs of both stages.
func (t Transfer) Name() string { return exchanged(t.Value) }

func exchanged(v int32) string { return fmt.Sprintf("%s%d", Exchanged, v) }

// Piece is the program of one task. It names inputs and outputs by their place: In and Out say which they are. Inputs
// are those of the program that was cut, Rows, values that were Exchanged, and values that earlier tasks of the stage
// have kept; outputs are those of the program that was cut, and values for other stages and later tasks.
type Piece struct {
	order.Task
	Program *program.Program
	In, Out []string
}

// Stage is what one stage holds and computes.
type Stage struct {
	State  []string // inputs of the step that the stage alone holds, in their order: parameters and moments
	Late   int      // updates by which the weights are older that its forwards and backwards read, see Plan.Late
	Pieces []Piece  // in an order in which they can be computed one after the other
	// All of them as one program: what a verifier executes again, and a dispute is about. Values of other stages are
	// inputs under the prefix parts.Received. All values that it exchanges with others in a step are a part of the state
	// after the step, under the prefix parts.Exchanged, which the step does not read.
	Whole *program.Program
}

// Plan is a program in stages.
type Plan struct {
	Micro     int           // microbatches of a step
	At        []order.Place // of each operator of the program; Stage is -1 where every stage that needs it computes it
	Stages    []Stage
	Transfers []Transfer // by From, To and Value
}

// Waits lists for each task of each stage the tasks of other stages whose values it reads.
func (p *Plan) Waits() []map[order.Task][]order.Place {
	waits := make([]map[order.Task][]order.Place, len(p.Stages))
	for s := range p.Stages {
		waits[s] = map[order.Task][]order.Place{}
		for _, piece := range p.Stages[s].Pieces {
			for _, name := range piece.In {
				t, ok := p.received(s, name)
				if !ok {
					continue
				}
				at := order.Place{Stage: t.From, Task: t.After}
				if list := waits[s][piece.Task]; !slices.Contains(list, at) {
					waits[s][piece.Task] = append(list, at)
				}
			}
		}
	}
	return waits
}

// received is the transfer to a stage under a name.
func (p *Plan) received(stage int, name string) (Transfer, bool) {
	if !strings.HasPrefix(name, Exchanged) {
		return Transfer{}, false
	}
	i := slices.IndexFunc(p.Transfers, func(t Transfer) bool { return t.To == stage && t.Name() == name })
	if i < 0 {
		return Transfer{}, false
	}
	return p.Transfers[i], true
}

// Tasks lists the tasks of every stage.
func (p *Plan) Tasks() [][]order.Task {
	all := make([][]order.Task, len(p.Stages))
	for s := range p.Stages {
		for _, piece := range p.Stages[s].Pieces {
			all[s] = append(all[s], piece.Task)
		}
	}
	return all
}

// Left is how many microbatches leave out a stage.
func (p *Plan) Left(stage int) int {
	passed := 0
	for _, piece := range p.Stages[stage].Pieces {
		if piece.Phase == order.Forward {
			passed++
		}
	}
	return p.Micro - passed
}

// Frame lists the transfers from a task of a stage to another stage.
func (p *Plan) Frame(from, to int, t order.Task) (list []Transfer) {
	for _, tr := range p.Transfers {
		if tr.From == from && tr.To == to && tr.After == t {
			list = append(list, tr)
		}
	}
	return list
}

// Bytes is the number of bytes that a stage sends to another in a step.
func (p *Plan) Bytes(from, to int) (n int64) {
	for _, t := range p.Transfers {
		if t.From == from && t.To == to {
			n += int64(t.Shape.Bytes())
		}
	}
	return n
}

// Cut cuts a program of model.Task.TrainStep before some groups of its layers, as Groups counts them: at least one, in
// ascending order. Programs whose loss is no cross-entropy, and those that draw answers, are refused.
func Cut(p *program.Program, before []int) (*Plan, error) {
	groups, err := Groups(p)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 || !slices.IsSorted(before) || before[0] < 1 || before[len(before)-1] >= len(groups) ||
		len(slices.Compact(slices.Clone(before))) != len(before) {
		return nil, fmt.Errorf("%w: before groups %v of %d, wanted at least one, in ascending order, from 1", ErrCut, before,
			len(groups))
	}
	pl, err := place(p, groups, func(group int) int { return upper(before, group) }, len(before)+1)
	if err != nil {
		return nil, err
	}
	for _, in := range p.Inputs() {
		i := slices.IndexFunc(p.Outputs, func(o program.Output) bool { return o.Name == in.Name })
		if i >= 0 && pl.home[p.Outputs[i].Value] != pl.home[in.Value] {
			return nil, fmt.Errorf("%w: %q is in stage %d, and its next value is made in stage %d", ErrCut, in.Name,
				pl.home[in.Value], pl.home[p.Outputs[i].Value])
		}
	}
	plan := pl.extract()
	for s, st := range plan.Stages {
		if len(st.State) == 0 || len(st.Pieces) < 2 {
			return nil, fmt.Errorf("%w: stage %d has nothing to compute", ErrCut, s)
		}
	}
	if err := errors.Join(checkKept(p), plan.checkLate()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCut, err)
	}
	if err := order.Check(plan.Tasks(), plan.Orders(), plan.Waits()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCut, err)
	}
	if late := plan.Late(); late > 0 {
		if _, err := plan.Timed(uint32(late)+2, func(order.Place) float64 { return 0 },
			func(_, _ order.Place) float64 { return 0 }); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCut, err)
		}
	}
	return plan, nil
}

// upper is the number of cuts at or before a group.
func upper(before []int, group int) int {
	n := 0
	for n < len(before) && before[n] <= group {
		n++
	}
	return n
}
