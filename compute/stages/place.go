package stages

import (
	"fmt"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/order"
)

// placed is a program whose operators have stages.
type placed struct {
	*classified
	n     int          // stages
	home  []int        // by value: the stage that computes it; -1: every stage that needs it does
	last  []int        // by value of class weight or forward: the last stage that reads it for a forward
	tasks []order.Task // by value of the other classes

	passes []map[int]bool // by microbatch: the stages that have weights which it reads
}

// place gives each operator a stage. stage is that of the weights of a group.
//
//   - What is computed from weights alone is computed where they are.
//   - The forward of a microbatch is a list, which is cut where the fewest bytes are read after the cut, between the
//     last operator that reads weights of the one stage and the first that reads weights of the next.
//   - What a backward computes from gradients and from values that a stage has, it computes there, in the last stage
//     where that holds: so a gradient is reduced to that of the cut values before it is sent. An Identity of a gradient
//     is a mark that the stage before reads it, as package boundary sets it: no other step has one.
//   - A microbatch may leave out stages. Nothing of its backward is computed there.
//   - The norm is added up through the stages, in the order of the parameters, and each parameter is updated where it
//     is.
func place(p *program.Program, groups []Group, stage func(group int) int, n int) (*placed, error) {
	c, err := classify(p)
	if err != nil {
		return nil, err
	}
	of := map[string]int{}
	for g := range groups {
		for _, w := range groups[g].Weights {
			of[w] = stage(g)
		}
	}
	pl := &placed{classified: c, n: n, home: make([]int, len(p.Ops)), last: make([]int, len(p.Ops)),
		tasks: make([]order.Task, len(p.Ops))}
	for i := range p.Ops {
		pl.home[i] = -1
		for _, r := range c.roots[i] {
			pl.home[i] = max(pl.home[i], of[c.owner[r]])
		}
		pl.last[i] = pl.home[i]
	}
	for k := range c.micro {
		pl.passes = append(pl.passes, map[int]bool{0: true})
		pl.cutForward(k)
	}
	for i := range p.Ops {
		pl.placeRest(i)
		if c.class[i] > weight {
			pl.tasks[i] = pl.taskOf(i)
		}
		if c.class[i] != free && pl.home[i] < 0 {
			return nil, fmt.Errorf("%w: operator %d (%s) has no stage", ErrCut, i, p.Ops[i].Kind)
		}
	}
	return pl, nil
}

// cutForward gives stages to the values that the loss of a microbatch depends on.
func (pl *placed) cutForward(part int) {
	var list []int
	for i := range pl.p.Ops {
		if pl.class[i] == forward && pl.loss[i] && pl.part[i] == part {
			list = append(list, i)
		}
	}
	cut := 0 // the place in the list before which the stage ends
	live := pl.live(list)
	for s := range pl.n - 1 {
		from, to := cut, len(list)
		for t := cut; t < len(list); t++ {
			low, high := pl.reads(list[t])
			if high > s {
				to = t
				break
			}
			if low >= 0 && low <= s {
				from = t + 1
			}
		}
		best := from
		for t := from; t <= to; t++ {
			if live[t] < live[best] {
				best = t
			}
		}
		pl.settle(list[cut:best], s)
		cut = best
	}
	pl.settle(list[cut:], pl.n-1)
}

// settle places operators of a forward in a stage.
func (pl *placed) settle(list []int, stage int) {
	for _, i := range list {
		pl.home[i] = stage
		pl.read(i, stage)
		if low, _ := pl.reads(i); low >= 0 {
			pl.passes[pl.part[i]][stage] = true
		}
	}
}

// read notes that a stage reads the operands of an operator for a forward.
func (pl *placed) read(i, stage int) {
	pl.last[i] = max(pl.last[i], stage)
	for _, v := range pl.p.Ops[i].In {
		if c := pl.class[v]; c == weight || c == forward {
			pl.last[v] = max(pl.last[v], stage)
		}
	}
}

// reads are the first and the last stage of the weights that an operator reads; -1: it reads none.
func (pl *placed) reads(i int) (low, high int) {
	low, high = -1, -1
	for _, v := range pl.p.Ops[i].In {
		if pl.class[v] != weight {
			continue
		}
		if low < 0 || pl.home[v] < low {
			low = pl.home[v]
		}
		high = max(high, pl.home[v])
	}
	return low, high
}

// live is, for each place in a list of operators, the bytes of the values made before it and read from it on.
func (pl *placed) live(list []int) []int64 {
	at, last := map[int32]int{}, make([]int, len(list))
	for t, i := range list {
		at[int32(i)] = t
		for _, v := range pl.p.Ops[i].In {
			if from, ok := at[v]; ok {
				last[from] = t
			}
		}
	}
	bytes := make([]int64, len(list)+2)
	for t, i := range list {
		if last[t] > t { // at the places t+1 to last[t]
			n := int64(pl.p.Ops[i].Out.Bytes())
			bytes[t+1] += n
			bytes[last[t]+1] -= n
		}
	}
	for t := 1; t < len(bytes); t++ {
		bytes[t] += bytes[t-1]
	}
	return bytes[:len(list)+1]
}

// placeRest places an operator that is no forward which the loss depends on.
func (pl *placed) placeRest(i int) {
	switch {
	case pl.class[i] == forward && !pl.loss[i]:
		pl.home[i] = pl.within(i)
		pl.read(i, pl.home[i])
	case pl.class[i] == gradient && pl.p.Ops[i].Kind == program.Identity:
		pl.home[i] = max(0, pl.within(i)-1)
	case pl.class[i] == gradient:
		pl.home[i] = pl.within(i)
		for !pl.passes[pl.part[i]][pl.home[i]] {
			pl.home[i]--
		}
	case pl.class[i] == update:
		pl.home[i] = pl.updated(i)
	}
}

// within is the last stage that has all operands of an operator without a further transfer to a later stage: of
// gradients, where they are made; of weights and forwards, the last stage that reads them.
func (pl *placed) within(i int) int {
	stage := pl.n - 1
	for _, v := range pl.p.Ops[i].In {
		switch pl.class[v] {
		case weight, forward:
			stage = min(stage, pl.last[v])
		case gradient:
			stage = min(stage, pl.home[v])
		}
	}
	return stage
}

// updated is the stage of an operator of the update: that of the weights and moments that it reads, or else of the
// gradients, and of scalars alone the last of theirs.
func (pl *placed) updated(i int) int {
	held, made, scalars := -1, -1, -1
	for _, v := range pl.p.Ops[i].In {
		switch b := pl.base(v); {
		case pl.class[v] == free:
		case pl.class[v] == weight:
			held = max(held, pl.home[v])
		case pl.class[v] == update && pl.p.Ops[b].Out.Elements() == 1:
			scalars = max(scalars, pl.home[b])
		default:
			made = max(made, pl.home[v])
		}
	}
	for _, stage := range []int{held, made} {
		if stage >= 0 {
			return stage
		}
	}
	return scalars
}

// Base is the value that a value is a view of, as far as views only repeat or rename elements: a stage that needs the
// view makes it of that.
func Base(p *program.Program, v int32) int32 {
	for {
		switch op := &p.Ops[v]; op.Kind {
		case program.Identity, program.Reshape, program.Transpose, program.Broadcast, program.Reverse:
			v = op.In[0]
		default:
			return v
		}
	}
}

func (pl *placed) base(v int32) int32 { return Base(pl.p, v) }

// taskOf is the task of an operator that has a stage.
func (pl *placed) taskOf(i int) order.Task {
	switch pl.class[i] {
	case forward:
		return order.Task{Phase: order.Forward, Number: pl.part[i]}
	case gradient:
		return order.Task{Phase: order.Backward, Number: pl.part[i]}
	}
	level := 0
	for _, v := range pl.p.Ops[i].In {
		if b := pl.base(v); pl.class[b] == update {
			before := pl.tasks[b].Number
			if pl.home[b] != pl.home[i] {
				before++
			}
			level = max(level, before)
		}
	}
	return order.Task{Phase: order.Update, Number: level}
}
