// Package recompute computes a part of one operator's output, from the leaves of its operands that the part needs and
// no others: what a dispute recomputes. A leaf of an output is computed in parts, one after the other, with a state
// between two of them that is specified to the bit; Divide finds the fewest parts that fit, Need lists the leaves that
// a part needs, Eval computes it with the portable kernels.
//
// It makes no tensor of an operand's size, and knows nothing of programs beyond one operator, nor of proofs and bonds.
package recompute

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/attend"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// ErrState is returned for a state between two parts that is not as long as it must be.
var ErrState = errors.New("recompute: this is no state between two parts of an operator")

// Division says in how many parts each leaf of an output is computed, one after the other: the leaf is cut in ranges,
// and each range in links along the lists that its elements are computed from. Between two parts there is a state, as
// specified as the output itself: the elements of the ranges that are done, then what is kept between two links.
type Division struct {
	Elements int // of the output, in a range; the last ranges of a short leaf have fewer, or none
	Ranges   int // of a leaf
	Along    int // elements of a list, in a link; 0 for kinds that have no lists
	Links    int // of a range
}

// Parts is the number of parts of a leaf.
func (d Division) Parts() int { return d.Ranges * d.Links }

// A Fit says which parts are small enough.
type Fit struct {
	// Part reports whether a part fits that needs these leaves of the operands, the indices included, and a state of
	// the given bytes before it. If a part fits, every part that needs less must fit, too.
	Part func(need [][]int, state int) bool

	// Spend is called with the cost of each part that was examined: pieces, runs of elements and leaves that were
	// listed. If it returns false, Divide stops and there is no division.
	Spend func(cost int) bool
}

// Divide returns the division of an operator into the fewest parts of which each fits, or false if not even the
// smallest do. It examines parts in the first, the middle and the last leaf, with the worst possible indices. Its
// cost is the sum of the calls of Fit.Spend. That of one part is bounded by maxVolume, however large the operands are.
func Divide(op *program.Operator, in []tensor.Shape, fit Fit) (best Division, ok bool) {
	_, n := op.Out.LeafRange(0)
	length, fits := listLength(op, in), &fitting{Fit: fit}
	least := min(shortestLink(op), length)
	for each := n; each > 0; each /= 2 {
		d := Division{Elements: each, Ranges: (n + each - 1) / each}.along(least, length)
		if !d.fits(op, in, fits) { // along lists it cannot get smaller
			continue
		}
		for d = d.along(length, length); !d.fits(op, in, fits); {
			if fits.spent {
				return best, false
			}
			d = d.along(1<<(bits.Len(uint(d.Along-1))-1), length) // the next power of two below
		}
		if !ok || d.Parts() < best.Parts() {
			best, ok = d, true
		}
		if d.Links == 1 {
			break // more ranges are more parts
		}
	}
	return best, ok && !fits.spent
}

// fitting is a Fit of which perhaps nothing is left to spend.
type fitting struct {
	Fit
	spent bool
}

// spend reports whether there is something left after this cost.
func (f *fitting) spend(cost int) bool {
	f.spent = f.spent || !f.Spend(cost)
	return !f.spent
}

// along is d with links of n elements of lists of some length.
func (d Division) along(n, length int) Division {
	d.Along, d.Links = n, 1
	if n > 0 {
		d.Links = (length + n - 1) / n
	}
	return d
}

// Limits of a part: the elements that it is computed from, and its multiply-adds.
const (
	maxVolume = 1 << 19
	maxWork   = 1 << 22
)

func (d Division) fits(op *program.Operator, in []tensor.Shape, fits *fitting) bool {
	if !fits.spend(1) || volume(op, in, d.Elements, d.Along) > maxVolume ||
		work(op, in, d.Elements, d.Along) > maxWork {
		return false
	}
	for _, leaf := range thirds(op.Out.Leaves()) {
		for _, r := range thirds(d.Ranges) {
			for _, l := range thirds(d.Links) {
				part := r*d.Links + l
				need, cost, err := d.worstNeed(op, in, leaf, part)
				if op.Kind.Attention() { // whose elements are gathered into rows one by one
					cost += d.Elements
				}
				if !fits.spend(cost) || err != nil || !fits.Part(need, d.StateBytes(op, in, leaf, part)) {
					return false
				}
			}
		}
	}
	return true
}

// thirds is the first, the middle and the last of n.
func thirds(n int) []int { return slices.Compact([]int{0, (n - 1) / 2, n - 1}) }

// volume bounds the elements of operands that n elements of an output are computed from, along so many of their lists.
func volume(op *program.Operator, in []tensor.Shape, n, along int) int {
	switch op.Kind {
	case program.Dot, program.DotExact:
		a, err := program.AxesOfDot(op.Ints, in[0].Rank(), in[1].Rank())
		if err != nil {
			return maxVolume + 1
		}
		rows, cols := view.Elements(view.Pick(in[0].Dims, a.LHSFree)), view.Elements(view.Pick(in[1].Dims, a.RHSFree))
		return along * (n/cols + 2 + min(cols, n)*(n/cols/rows+1))
	case program.SumSquares:
		return along
	case program.AddRows:
		return along * (min(n, view.Elements(in[0].Dims[1:])) + 1)
	case program.ReduceSum, program.ReduceMax, program.ReduceMin:
		return n * along
	case program.FirstMax:
		return n * view.Elements(view.Pick(in[0].Dims, op.Ints))
	case program.SumWindows:
		return n * view.Elements(in[0].Dims[op.Out.Rank():])
	case program.CausalAttention, program.CausalAttentionLSE, program.CausalAttentionGradQ,
		program.CausalAttentionGradK, program.CausalAttentionGradV:
		a := attend.Of(op, in)
		return a.Volume(n, along)
	case program.CrossEntropy, program.CrossEntropyGrad:
		return crossEntropyVolume(op, in, n)
	case program.Grade:
		return n * (in[0].Dims[1] + in[1].Dims[1])
	}
	return n * len(in)
}

// work bounds the multiply-adds of n elements of an output, or the steps of n rewards; along is the length of their
// lists. Other kinds have fewer than their volume.
func work(op *program.Operator, in []tensor.Shape, n, along int) int {
	switch {
	case op.Kind.Multiplies():
		return times(n, along)
	case op.Kind.Attention():
		a := attend.Of(op, in)
		return a.Work(n, along)
	case op.Kind == program.Grade:
		return times(n, int(op.Ints[0]))
	}
	return 0
}

// worstNeed lists the leaves of the operands that a part of a leaf needs at most, whatever the indices say, and the
// cost of listing them. Of an IndexOperand it makes the leaves that the part reads, and no others.
func (d Division) worstNeed(op *program.Operator, in []tensor.Shape, leaf, part int) (need [][]int, cost int,
	err error) {
	pieces, err := d.cut(op, in, leaf, part, nil)
	need = needs(pieces, in)
	cost = costOf(pieces, need)
	k := op.Kind.IndexOperand()
	if err != nil || k < 0 {
		return need, cost, err
	}
	indices := tensor.NewPartial(in[k])
	for _, l := range need[k] {
		worst := worstIndices(op, in, leaf, l)
		indices.Set(l, worst)
		cost += len(worst) / in[k].DType.Size() / 4
	}
	if pieces, err = d.cut(op, in, leaf, part, indices); err != nil {
		return nil, cost, err
	}
	all := needs(pieces, in)
	cost += costOf(pieces, all)
	all[k] = need[k]
	return all, cost, nil
}

// costOf is the cost of listing and proving the leaves that pieces need, in units of 7 to 40 nanoseconds.
func costOf(pieces []piece, need [][]int) int {
	n := 1
	for i := range pieces {
		p := &pieces[i]
		n += 8 + len(p.data)/32 + len(p.rows)/4 + len(p.take) + len(p.sums)
		for _, g := range p.in {
			n += 6 + 2*len(g.Runs) + g.Steps/4
		}
	}
	for _, leaves := range need {
		n += 2 * len(leaves)
	}
	return n
}

// worstIndices are the bytes of a leaf of an IndexOperand with which the parts of a leaf of the output need as much as
// they can.
func worstIndices(op *program.Operator, in []tensor.Shape, leaf, of int) []byte {
	k := op.Kind.IndexOperand()
	lo, hi := op.Out.LeafRange(leaf)
	rows, width := in[0].Dims[0], view.Elements(in[0].Dims[1:])
	from, to := in[k].LeafRange(of)
	t := tensor.New(tensor.Make(in[k].DType, to-from))
	for i := from; i < to; i++ {
		row := (lo + hi) / 2 / width     // every update is of the leaf
		if op.Kind == program.TakeRows { // the rows of the leaf are spread over the table
			row = i * (rows*width/(hi-lo+width) + 1) % rows
		}
		if in[k].DType == tensor.Int64 {
			t.I64()[i-from] = int64(row)
		} else {
			t.I32()[i-from] = int32(row)
		}
	}
	return t.Bytes()
}

// span returns the elements of the output and of their lists that a part is about.
func (d Division) span(op *program.Operator, in []tensor.Shape, leaf, part int) (lo, hi, from, to int) {
	lo, hi = op.Out.LeafRange(leaf)
	lo = min(lo+part/d.Links*d.Elements, hi)
	hi = min(lo+d.Elements, hi)
	from = part % d.Links * d.Along
	return lo, hi, from, min(from+d.Along, listLength(op, in))
}

// StateBytes is the size of the state before a part of a leaf; before the first there is none.
func (d Division) StateBytes(op *program.Operator, in []tensor.Shape, leaf, part int) int {
	first, _ := op.Out.LeafRange(leaf)
	lo, hi, from, _ := d.span(op, in, leaf, part)
	n := (lo - first) * op.Out.DType.Size()
	switch {
	case from > 0 && op.Kind.Attention():
		a := attend.Of(op, in)
		n += a.StateBytes(lo, hi, from)
	case from > 0:
		n += stateBytes(op, hi-lo, listLength(op, in), from)
	}
	return n
}

// Need returns, for every operand, which leaves of its Tree hold the elements that a part of a leaf of the output is
// computed from, ascending. With an IndexOperand these depend on its elements; if indices is nil, the answer has its
// leaves alone. The operator must come from a verified program and the shapes be those of its operands.
func Need(op *program.Operator, in []tensor.Shape, d Division, leaf, part int, indices *tensor.Partial) ([][]int,
	error) {
	pieces, err := d.cut(op, in, leaf, part, indices)
	if err != nil {
		return nil, err
	}
	return needs(pieces, in), nil
}

// cut returns the pieces that make a part of a leaf.
func (d Division) cut(op *program.Operator, in []tensor.Shape, leaf, part int, indices *tensor.Partial) ([]piece,
	error) {
	lo, hi, from, to := d.span(op, in, leaf, part)
	switch {
	case lo == hi:
		return nil, nil
	case d.Links == 1:
		return cut(op, in, lo, hi, indices)
	}
	return cutList(op, in, lo, hi, from, to, indices)
}

// Eval computes a part of a leaf, of an operator of a program of the given numerics, from the state before it, and
// returns the state after it: after the last part, the bytes of the leaf, which are those of cpu.Eval. The operands
// need to have no more than the leaves that Need lists. Errors wrap ErrPartial or ErrState, or are those of cpu.Eval.
func Eval(numerics uint32, op *program.Operator, in []*tensor.Partial, d Division, leaf, part int,
	state []byte) ([]byte, error) {
	shapes := shapesOf(in)
	if n := d.StateBytes(op, shapes, leaf, part); len(state) != n {
		return nil, fmt.Errorf("%w: %d bytes, wanted %d", ErrState, len(state), n)
	}
	first, _ := op.Out.LeafRange(leaf)
	lo, hi, from, to := d.span(op, shapes, leaf, part)
	done := (lo - first) * op.Out.DType.Size()
	out := slices.Clone(state[:done])
	if lo == hi {
		return out, nil
	}
	var next []byte
	var err error
	switch {
	case d.Links == 1:
		next, err = EvalRange(numerics, op, in, lo, hi)
	case op.Kind.Attention():
		a := attend.Of(op, shapes)
		next, err = a.Follow(numerics, in, state[done:], lo, hi, from, to)
	default:
		var pieces []piece
		if pieces, err = cutList(op, shapes, lo, hi, from, to, indicesOf(op, in)); err == nil {
			next, err = follow(numerics, op, pieces, in, state[done:], hi-lo, listLength(op, shapes), from, to)
		}
	}
	if err != nil {
		return nil, err
	}
	if op.Out.DType == tensor.Float32 { // and then so is every state
		t := tensor.FromF32(tensor.CopyF32(next), len(next)/4)
		t.Canonicalize()
		next = t.Bytes()
	}
	return append(out, next...), nil
}

func shapesOf(in []*tensor.Partial) []tensor.Shape {
	out := make([]tensor.Shape, len(in))
	for i, p := range in {
		out[i] = p.Shape
	}
	return out
}

func indicesOf(op *program.Operator, in []*tensor.Partial) *tensor.Partial {
	if k := op.Kind.IndexOperand(); k >= 0 {
		return in[k]
	}
	return nil
}
