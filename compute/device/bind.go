package device

import (
	"fmt"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// boundStep is a step of a plan on the device: launches, or none where the processor computes it.
type boundStep struct {
	check    *check // before the launches; nil: none
	launches []Launch
}

// binding is a plan while its steps are bound to kernels.
type binding struct {
	layout  layout
	printer printer
	table   []int64
	steps   []boundStep
	after   []Launch
}

// layout says where stores are in the memory of the device.
type layout struct {
	places          []int64 // by store
	inputs, outputs map[string]int
	scratch         [2]int64 // sums of pieces
	flag            int64    // set by checks
	bytes           int      // in all
}

// alignment of stores, in bytes: what a device reads at once.
const alignment = 256

// bindAll binds the steps of a plan.
func bindAll(pl *lower.Plan, carried []string) *binding {
	b := &binding{printer: printer{names: map[string]string{}}}
	b.place(pl, carried)
	for i := range pl.Steps {
		b.steps = append(b.steps, b.bind(pl, &pl.Steps[i]))
	}
	return b
}

// place lays out the stores: the arena, then all others. An output that is carried has the place of the input if that
// is allowed.
func (b *binding) place(pl *lower.Plan, carried []string) {
	l := &b.layout
	l.places = make([]int64, len(pl.Stores))
	l.inputs, l.outputs = map[string]int{}, map[string]int{}
	take := func(bytes int) int64 {
		at := l.bytes
		l.bytes += (bytes + alignment - 1) / alignment * alignment
		return int64(at)
	}
	take(pl.Arena)
	for s, store := range pl.Stores {
		switch store.Class {
		case lower.InInput:
			l.inputs[pl.Program.Ops[store.Index].Name] = s
		case lower.InOutput:
			l.outputs[pl.Program.Outputs[store.Index].Name] = s
		}
	}
	shared := map[int]int{} // outputs, to the inputs whose places they have
	for _, name := range carried {
		in, given := l.inputs[name]
		if out, made := l.outputs[name]; given && made && pl.MayShare(pl.Stores[in].Index, pl.Stores[out].Index) {
			shared[out] = in
		}
	}
	for s, store := range pl.Stores {
		if _, same := shared[s]; store.Class == lower.InArena {
			l.places[s] = int64(store.Offset)
		} else if !same {
			l.places[s] = take(store.Bytes)
		}
	}
	for out, in := range shared {
		l.places[out] = l.places[in]
	}
	for _, name := range carried {
		in, given := l.inputs[name]
		if out, made := l.outputs[name]; given && made && l.places[in] != l.places[out] {
			b.after = append(b.after, b.copied(l.places[out], l.places[in], pl.Stores[out].Bytes))
		}
	}
	var most int // elements of the sums of pieces
	for i := range pl.Steps {
		most = max(most, piecesOf(&pl.Steps[i]))
	}
	l.flag = take(4)
	for i := range l.scratch {
		l.scratch[i] = take(4 * most)
	}
}

func (b *binding) bind(pl *lower.Plan, st *lower.Step) (s boundStep) {
	if st.Kind == program.TakeRows || st.Kind == program.AddRows {
		s.launches, s.check = b.addressed(st)
		return s
	}
	s.launches = b.launches(pl, st)
	return s
}

// launches returns the launches of a step; none if there is no kernel for it.
func (b *binding) launches(pl *lower.Plan, st *lower.Step) []Launch {
	switch {
	case st.Group != nil:
		name, numbers := b.printer.group(st.Group, pl.Stores, b.layout.places)
		return []Launch{b.launch(name, [3]int{st.Group.N, 1, 1}, numbers...)}
	case st.Attention != nil:
		return b.attention(st.Attention)
	case st.Kind.Multiplies():
		return b.products(st)
	case st.Kind == program.SumSquares:
		return b.sums("sum_squares", st, 1, view.Elements(st.In[0].Dims), 1)
	case st.Kind == program.ReduceSum || st.Kind == program.ReduceMax || st.Kind == program.ReduceMin:
		return b.reduction(st)
	case st.Kind == program.CrossEntropy || st.Kind == program.CrossEntropyGrad:
		return b.crossEntropy(st)
	case st.Kind == program.Concat:
		return b.concat(st)
	}
	return b.shaped(st)
}

// launch is a kernel on a grid of work-items, of which the first dimension is rounded up to whole groups.
func (b *binding) launch(kernel string, global [3]int, numbers ...int64) Launch {
	global[0] = (global[0] + groupItems - 1) / groupItems * groupItems
	return b.grouped(kernel, global, [3]int{groupItems, 1, 1}, numbers...)
}

// grouped is a kernel in work-groups of a size of its own.
func (b *binding) grouped(kernel string, global, local [3]int, numbers ...int64) Launch {
	l := Launch{kernel, global, local, len(b.table)}
	b.table = append(b.table, numbers...)
	return l
}

func (b *binding) copied(from, to int64, bytes int) Launch {
	return b.launch("copy_bytes", [3]int{(bytes + 3) / 4, 1, 1}, from, to, int64(bytes))
}

// at is the place of a location's first element.
func (b *binding) at(l lower.Location) int64 {
	return b.layout.places[l.Store] + int64(l.Offset*l.Type.Size())
}

// tile is the number of rows and of columns that a work-group of gemm computes, and side the work-items of one.
const tile, side = 64, 16

// maxRuns bounds the launches of a step: the processor computes products in more runs.
const maxRuns = 1 << 16

func (b *binding) products(st *lower.Step) (list []Launch) {
	p, name, block := st.Product(), "gemm", 0
	if p.Batch.Runs() > maxRuns {
		return nil
	}
	if st.Kind == program.DotExact {
		f := program.FormOfDot(st.Ints)
		name, block = fmt.Sprintf("gemm_exact%d", f.Bits), f.Block
	}
	places := b.layout.places
	lhs, rhs, out := places[st.In[0].Store], places[st.In[1].Store], places[st.Out.Store]
	grid := func(n int) int { return (n + tile - 1) / tile * side }
	for i := range p.Batch.Runs() {
		r := p.Batch.Run(i)
		list = append(list, b.grouped(name, [3]int{grid(p.N), grid(p.M), r.Count}, [3]int{side, side, 1},
			int64(p.M), int64(p.N), int64(p.K),
			lhs+4*int64(r.A), int64(r.AStep), int64(p.ARow), int64(p.ACol),
			rhs+4*int64(r.B), int64(r.BStep), int64(p.BRow), int64(p.BCol), out+4*int64(r.C), int64(block)))
	}
	return list
}

// piece is the number of elements of a piece of a sum, and lanes the work-items that add one: kernel.Path.Sum.
const piece, lanes = 4096, 16

func pieces(n int) int { return (n + piece - 1) / piece }

// piecesOf is the number of sums of pieces that a step makes in addition to its results.
func piecesOf(st *lower.Step) int {
	switch {
	case st.Group != nil || st.Attention != nil:
	case st.Kind == program.SumSquares:
		return pieces(view.Elements(st.In[0].Dims))
	case st.Kind == program.ReduceSum && st.Out.Type == tensor.Float32:
		outer, n, inner, _ := view.Middle(st.In[0].Dims, st.Ints)
		if n > piece {
			return outer * inner * pieces(n)
		}
	}
	return 0
}

func (b *binding) reduction(st *lower.Step) []Launch {
	outer, n, inner, _ := view.Middle(st.In[0].Dims, st.Ints)
	name := map[program.Kind]string{program.ReduceSum: "sum", program.ReduceMax: "max", program.ReduceMin: "min"}[st.Kind]
	switch {
	case st.Kind != program.ReduceSum || st.In[0].Type != tensor.Float32:
		return []Launch{b.launch("fold_"+name+"_"+typeOf(st.In[0].Type), [3]int{inner, 1, outer},
			int64(n), 0, b.at(st.In[0]), b.at(st.Out), int64(inner))}
	case inner == 1:
		return b.sums("sum_rows", st, outer, n, 1)
	}
	return b.sums("sum_columns", st, outer, n, inner)
}

// sums adds [outer, n, inner] over n, level by level.
func (b *binding) sums(kernel string, st *lower.Step, outer, n, inner int) (list []Launch) {
	from := b.at(st.In[0])
	for level := 0; ; level++ {
		count, to := pieces(n), b.layout.scratch[level%2]
		if count == 1 {
			to = b.at(st.Out)
		}
		numbers := []int64{int64(n), int64(count), from, to, int64(inner)}
		if kernel == "sum_columns" {
			list = append(list, b.launch(kernel, [3]int{inner, count, outer}, numbers...))
		} else {
			list = append(list, b.grouped(kernel, [3]int{lanes * outer * count, 1, 1}, [3]int{lanes, 1, 1}, numbers...))
		}
		if count == 1 {
			return list
		}
		if from, n = to, count; kernel == "sum_squares" {
			kernel = "sum_rows"
		}
	}
}
