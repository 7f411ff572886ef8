package stages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train/parts"
)

// extraction makes the programs of tasks.
type extraction struct {
	*placed
	pieces    []map[order.Task]*piece // by stage
	transfers map[[2]int]Transfer     // by value and stage that reads it
	outputs   map[string]int32        // values of the outputs of the step
}

// piece is the operators of a task, before they are a program.
type piece struct {
	stage  int
	task   order.Task
	whole  bool           // it is all tasks of the stage
	source map[int32]bool // values that it computes, or reads as inputs of the step
	given  map[int32]bool // values that are inputs because another task made them
	made   []program.Output
}

// extract makes the programs of all stages.
func (pl *placed) extract() *Plan {
	x := &extraction{placed: pl, transfers: map[[2]int]Transfer{}, outputs: map[string]int32{}}
	for _, o := range pl.p.Outputs {
		x.outputs[o.Name] = o.Value
	}
	for range pl.n {
		x.pieces = append(x.pieces, map[order.Task]*piece{})
	}
	for _, made := range []bool{true, false} { // what the step leaves as it is needs a task that there is
		for _, o := range pl.p.Outputs {
			if made != (pl.class[o.Value] > weight) {
				continue
			}
			p := x.maker(o)
			x.need(p, o.Value)
			p.made = append(p.made, o)
		}
	}
	plan := &Plan{Micro: pl.micro, Transfers: slices.SortedFunc(maps.Values(x.transfers), func(a, b Transfer) int {
		return cmp.Or(a.From-b.From, a.To-b.To, int(a.Value-b.Value))
	})}
	for s := range pl.n {
		plan.Stages = append(plan.Stages, x.stage(s))
	}
	for i := range pl.p.Ops {
		plan.At = append(plan.At, order.Place{Stage: pl.home[i], Task: pl.tasks[i]})
	}
	return plan
}

// at is the piece of a task.
func (x *extraction) at(stage int, t order.Task) *piece {
	p, ok := x.pieces[stage][t]
	if !ok {
		p = &piece{stage: stage, task: t, source: map[int32]bool{}, given: map[int32]bool{}}
		x.pieces[stage][t] = p
	}
	return p
}

// maker is the piece that makes an output of the step: of a value of a weight before an update, the piece that updates
// it; of a weight that the step leaves as it is, the last of its stage.
func (x *extraction) maker(o program.Output) *piece {
	v := o.Value
	if _, of, ok := optimizer.EarlierOf(o.Name); ok {
		if updated, ok := x.outputs[optimizer.Param+of]; ok {
			v = updated
		}
	}
	if x.class[v] > weight {
		return x.at(x.home[v], x.tasks[v])
	}
	stage, last := max(0, x.home[v]), order.Task{Phase: order.Update}
	for t := range x.pieces[stage] {
		if t.Compare(last) > 0 {
			last = t
		}
	}
	return x.at(stage, last)
}

// need has a piece compute a value, or read it.
func (x *extraction) need(p *piece, v int32) {
	if p.source[v] || p.given[v] {
		return
	}
	here := x.class[v] == free || x.home[v] == p.stage && (x.class[v] == weight || x.tasks[v] == p.task || p.whole)
	if !here && x.base(v) == v {
		p.given[v] = true
		x.give(p, v)
		return
	}
	p.source[v] = true
	if _, part := x.slice(int(v)); part && !p.whole {
		return
	}
	for _, o := range x.p.Ops[v].In {
		x.need(p, o)
	}
}

// give has another task make a value that a piece reads.
func (x *extraction) give(p *piece, v int32) {
	if p.whole {
		return
	}
	task := order.Task{Phase: order.Weights}
	if x.class[v] > weight {
		task = x.tasks[v]
	}
	name, from := fmt.Sprintf("%s%d", Kept, v), x.at(x.home[v], task)
	if x.home[v] != p.stage {
		name = exchanged(v)
		x.transfers[[2]int{int(v), p.stage}] = Transfer{Value: v, From: x.home[v], To: p.stage, After: task,
			Shape: x.p.Ops[v].Out}
	}
	x.need(from, v)
	if !slices.ContainsFunc(from.made, func(o program.Output) bool { return o.Name == name }) {
		from.made = append(from.made, program.Output{Name: name, Value: v})
	}
}

// stage is the programs of a stage.
func (x *extraction) stage(s int) Stage {
	var st Stage
	for _, in := range x.p.Inputs() {
		if x.owner[in.Value] != "" && x.home[in.Value] == s {
			st.State = append(st.State, in.Name)
		}
	}
	whole := &piece{stage: s, whole: true, source: map[int32]bool{}, given: map[int32]bool{}}
	for _, t := range slices.SortedFunc(maps.Keys(x.pieces[s]), order.Task.Compare) {
		p := x.pieces[s][t]
		slices.SortFunc(p.made, func(a, b program.Output) int {
			return cmp.Or(x.rank(a)-x.rank(b), int(a.Value-b.Value), cmp.Compare(a.Name, b.Name))
		})
		st.Pieces = append(st.Pieces, x.piece(p))
		for v := range p.source {
			x.need(whole, v)
		}
	}
	for _, o := range x.p.Outputs {
		if max(0, x.home[o.Value]) == s {
			whole.made = append(whole.made, o)
		}
	}
	var exchanged []int32
	for key, t := range x.transfers {
		if (t.From == s || t.To == s) && !slices.Contains(exchanged, int32(key[0])) {
			exchanged = append(exchanged, int32(key[0]))
		}
	}
	slices.Sort(exchanged)
	st.Whole = x.whole(whole, exchanged)
	return st
}

// whole makes the program of all tasks of a stage.
func (x *extraction) whole(p *piece, exchanged []int32) *program.Program {
	for _, v := range exchanged {
		x.need(p, v)
		p.made = append(p.made, program.Output{Name: Transfer{Value: v}.Name(), Value: v})
	}
	out := x.program(p)
	for _, v := range exchanged { // what was exchanged in the step before
		name := Transfer{Value: v}.Name()
		out.Ops = append(out.Ops, program.Operator{Kind: program.Input, Out: x.p.Ops[v].Out, Name: name})
	}
	return out
}

// rank is the place of an output among those of the step; others come after them.
func (x *extraction) rank(o program.Output) int {
	if i := slices.Index(x.p.Outputs, o); i >= 0 {
		return i
	}
	return len(x.p.Outputs)
}

// piece makes the program of a task. The tasks of most microbatches have the same program, as names have no numbers of
// values and microbatches are given.
func (x *extraction) piece(p *piece) Piece {
	made := Piece{Task: p.task, Program: x.program(p)}
	for i := range made.Program.Ops {
		if op := &made.Program.Ops[i]; op.Kind == program.Input {
			made.In = append(made.In, op.Name)
			op.Name = fmt.Sprintf("i%d", len(made.In)-1)
		}
	}
	for i := range made.Program.Outputs {
		o := &made.Program.Outputs[i]
		made.Out = append(made.Out, o.Name)
		o.Name = fmt.Sprintf("o%d", i)
	}
	return made
}

// program makes a program of a piece, with the names of the step.
func (x *extraction) program(p *piece) *program.Program {
	out, to := &program.Program{Numerics: x.p.Numerics}, map[int32]int32{}
	for i := range x.p.Ops {
		v, op := int32(i), x.p.Ops[i]
		first, part := x.slice(i)
		switch {
		case p.given[v] && x.home[v] == p.stage:
			op = program.Operator{Kind: program.Input, Out: op.Out, Name: fmt.Sprintf("%s%d", Kept, v)}
		case p.given[v] && p.whole:
			op = program.Operator{Kind: program.Input, Out: op.Out, Name: fmt.Sprintf("%s%d", parts.Received, v)}
		case p.given[v]:
			op = program.Operator{Kind: program.Input, Out: op.Out, Name: exchanged(v)}
		case !p.source[v]:
			continue
		case part && !p.whole:
			op = program.Operator{Kind: program.Input, Out: op.Out, Name: fmt.Sprintf("%s%d", Rows, first)}
		default:
			in := make([]int32, len(op.In))
			for k, o := range op.In {
				in[k] = to[o]
			}
			op.In = in
		}
		to[v] = int32(len(out.Ops))
		out.Ops = append(out.Ops, op)
	}
	for _, o := range p.made {
		out.Outputs = append(out.Outputs, program.Output{Name: o.Name, Value: to[o.Value]})
	}
	return out
}
