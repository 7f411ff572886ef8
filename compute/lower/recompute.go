package lower

import (
	"slices"

	"github.com/starling-network/starling/compute/program"
)

// Recompute returns a program with the same inputs, outputs and bits that keeps less of a forward pass: its backward
// pass recomputes the values that it needs from the values between layers (Chen et al. 2016). Forward passes are
// those of the CrossEntropy operators. A program that this makes no smaller is returned as it is, and so is one with
// more than maxLosses of them.
func Recompute(p *program.Program) *program.Program {
	f := forwardOf(p)
	if len(f.ends) > maxLosses {
		return p
	}
	f.find()
	best, least := p, Program(Fresh(p)).Arena
	for _, every := range []int{1, 2, 4} {
		if f.cuts(every); len(f.kept) == 0 {
			break
		}
		q := f.rewrite()
		if n := Program(Fresh(q)).Arena; n < least {
			best, least = q, n
		}
	}
	return best
}

// maxLosses bounds the forward passes: each is searched for in the whole program.
const maxLosses = 1024

// forward is which operators of a program are of forward passes.
type forward struct {
	p      *program.Program
	pass   []int   // by operator: the pass that it is of, from 1; 0: none, or it depends on no input
	root   []int32 // by operator: the value whose elements its result shows
	ends   []int   // of each pass: its CrossEntropy
	isEnd  []bool  // by operator
	varies []bool  // by operator: with the inputs
	kept   map[int32]bool
	tail   []int // of each pass: the operator after which all values are kept: the backward pass begins with them
	small  int   // values of at most this many bytes are kept
}

// forwardOf finds the losses of a program, and the values that its operators show.
func forwardOf(p *program.Program) *forward {
	f := &forward{p: p, pass: make([]int, len(p.Ops)), root: make([]int32, len(p.Ops)), varies: make([]bool, len(p.Ops)),
		isEnd: make([]bool, len(p.Ops))}
	for i := range p.Ops {
		op := &p.Ops[i]
		f.root[i] = int32(i)
		if op.Kind.Views() {
			f.root[i] = f.root[op.In[0]]
		}
		f.varies[i] = op.Kind == program.Input || slices.ContainsFunc(op.In, func(v int32) bool { return f.varies[v] })
		if op.Kind == program.CrossEntropy {
			f.ends, f.isEnd[i] = append(f.ends, i), true
		}
	}
	return f
}

// find finds the forward passes: what each loss needs, and what else is made of that before it.
func (f *forward) find() {
	p := f.p
	for k, end := range f.ends {
		needed := make([]bool, end+1)
		needed[end] = true
		for i := end; i >= 0; i-- {
			for _, v := range p.Ops[i].In {
				needed[v] = needed[v] || needed[i]
			}
		}
		for i := range end {
			op := &p.Ops[i]
			if f.pass[i] > 0 || !f.varies[i] || op.Kind == program.Input {
				continue
			}
			of := func(v int32) bool { return f.pass[v] == k+1 }
			other := func(v int32) bool { return !of(v) && f.varies[v] && p.Ops[v].Kind != program.Input }
			beside := slices.ContainsFunc(op.In, of) && !slices.ContainsFunc(op.In, other)
			if needed[i] || beside {
				f.pass[i] = k + 1
			}
		}
	}
}

// cuts keeps the live values between layers, at the place with the fewest live bytes in each group of every places.
func (f *forward) cuts(every int) {
	f.kept, f.tail = map[int32]bool{}, make([]int, len(f.ends)+1)
	for k, end := range f.ends {
		places, last := f.places(k+1, end)
		least := -1
		dots, all := 0, 0
		for _, a := range places {
			all += a.dots
		}
		for _, a := range places {
			if dots += a.dots; dots > 0 && dots < all && (least < 0 || a.bytes < least) {
				least = a.bytes
			}
		}
		f.small = least / 16
		var cuts []int
		at, since, dots := 0, true, 0
		for _, a := range places {
			if dots += a.dots; a.dots > 0 {
				since = true
			}
			if !since || dots == 0 || dots == all || a.bytes > least+least/4 {
				continue
			}
			if since = false; at%every == 0 {
				cuts = append(cuts, a.op)
				f.tail[k+1] = a.op
			}
			at++
		}
		f.keep(places, last, cuts)
	}
}

// keep keeps the values that are alive at one of the cuts, which ascend: made at it or before, and read after it.
func (f *forward) keep(places []place, last []int, cuts []int) {
	next := 0 // the first cut that is not before the operator
	for _, a := range places {
		for next < len(cuts) && cuts[next] < a.op {
			next++
		}
		if next < len(cuts) && f.root[a.op] == int32(a.op) && last[a.op] > cuts[next] {
			f.kept[int32(a.op)] = true
		}
	}
}

// place is an operator of a pass that its loss needs, and what is alive after it.
type place struct {
	op, bytes, dots int // dots: 1 if the operator is a product
}

// places lists the operators of a pass that its loss needs, in order, and by value the last of them that reads it.
func (f *forward) places(pass, end int) (out []place, last []int) {
	needed := make([]bool, end+1)
	needed[end] = true
	last = make([]int, end+1)
	for i := end; i >= 0; i-- {
		if !needed[i] {
			continue
		}
		for _, v := range f.p.Ops[i].In {
			needed[v] = true
			if r := f.root[v]; f.pass[r] == pass {
				last[r] = max(last[r], i)
			}
		}
	}
	dies := make([]int, end+1) // bytes of the values that nothing after the operator reads
	alive := 0
	for i := range end {
		if f.pass[i] != pass || !needed[i] {
			continue
		}
		a := place{op: i}
		if f.root[i] == int32(i) && last[i] > i {
			alive += f.p.Ops[i].Out.Bytes()
			dies[last[i]] += f.p.Ops[i].Out.Bytes()
		}
		alive -= dies[i]
		a.bytes = alive
		if f.p.Ops[i].Kind.Multiplies() {
			a.dots = 1
		}
		out = append(out, a)
	}
	return out, last
}

// rewrite computes again, for operators of no pass, what is of one and not kept.
func (f *forward) rewrite() *program.Program {
	out := &program.Program{Numerics: f.p.Numerics}
	first, again := make([]int32, len(f.p.Ops)), make([]int32, len(f.p.Ops))
	add := func(i int32, in []int32) int32 {
		op := f.p.Ops[i]
		op.In = in
		out.Ops = append(out.Ops, op)
		return int32(len(out.Ops) - 1)
	}
	var value func(v int32) int32 // for an operator of no pass
	value = func(v int32) int32 {
		r := f.root[v]
		if f.pass[v] == 0 || int(v) > f.tail[f.pass[v]] || f.kept[r] || f.pass[r] == 0 || f.p.Ops[r].Out.Bytes() <= f.small {
			return first[v]
		}
		if again[v] == 0 {
			in := make([]int32, len(f.p.Ops[v].In))
			for k, o := range f.p.Ops[v].In {
				in[k] = value(o)
			}
			again[v] = add(v, in)
		}
		return again[v]
	}
	for i := range f.p.Ops {
		op := &f.p.Ops[i]
		in := make([]int32, len(op.In))
		for k, v := range op.In {
			if in[k] = first[v]; f.pass[i] == 0 && !f.isEnd[i] && i > f.ends[0] {
				in[k] = value(v)
			}
		}
		first[i] = add(int32(i), in)
	}
	for _, o := range f.p.Outputs {
		out.Outputs = append(out.Outputs, program.Output{Name: o.Name, Value: first[o.Value]})
	}
	return out
}
