// Package attend computes elements of the output of an operator of causal attention, or of its gradients, along lists:
// a part of a list at a time, with a state between two parts that is specified to the bit. So what a dispute needs at
// once does not grow with the context. The order of operations is that of attention.Head. How lists are cut is for
// recompute.
package attend

import (
	"strings"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/attention"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// List is an operator of attention whose elements are computed along lists. That of a query is the blocks of keys,
// of the forward kinds twice: first for the largest score, then for the sums. That of a key is the queries, of one head
// after the other that share it. Blocks and queries that attention.Head leaves out are in the lists, and add nothing.
type List struct {
	head  attention.Head
	op    *program.Operator
	in    []tensor.Shape
	group int // heads of queries that share one of keys
	width int // elements of a row of the output
}

// Of returns the lists of an operator with operands of these shapes.
func Of(op *program.Operator, in []tensor.Shape) List {
	return List{Head(op, in), op, in, in[0].Dims[1] / in[1].Dims[1], view.Elements(op.Out.Dims[3:])}
}

// Head is one head of an operator of attention, computed with the portable kernels.
func Head(op *program.Operator, in []tensor.Shape) attention.Head {
	q, k := in[0], in[1]
	return attention.Head{Math: elementary.Math{Path: kernel.Portable}, Queries: q.Dims[2], Keys: k.Dims[2],
		Width: q.Dims[3], Query: int(op.Ints[0]), Key: int(op.Ints[1])}
}

// byKeys reports whether rows of the output are those of keys.
func (a *List) byKeys() bool {
	return a.op.Kind == program.CausalAttentionGradK || a.op.Kind == program.CausalAttentionGradV
}

// forward reports whether the list of a query has its blocks twice.
func (a *List) forward() bool { return a.op.Kind <= program.CausalAttentionLSE }

// operand is the one with a role, of program.Kind.AttentionRoles.
func (a *List) operand(role byte) int { return strings.IndexByte(a.op.Kind.AttentionRoles(), role) }

// ofKeys reports whether an operand has a row for each key, and not for each query.
func (a *List) ofKeys(operand int) bool {
	role := a.op.Kind.AttentionRoles()[operand]
	return role == 'k' || role == 'v'
}

// blocks is the number of blocks of keys.
func (a *List) blocks() int {
	return (a.head.Key+a.head.Keys-1)/attention.Block - a.head.Key/attention.Block + 1
}

// block returns the keys of a block.
func (a *List) block(b int) (lo, hi int) {
	start := (a.head.Key/attention.Block+b)*attention.Block - a.head.Key
	return max(0, start), min(a.head.Keys, start+attention.Block)
}

// Length is that of the lists.
func (a *List) Length() int {
	switch {
	case a.byKeys():
		return a.group * a.head.Queries
	case a.forward():
		return 2 * a.blocks()
	}
	return a.blocks()
}

// A stretch is neighbouring elements of the output in rows of one head, the first and the last perhaps not whole.
type stretch struct {
	batch, of int // head
	rows      []partRow
}

// partRow is elements lo up to hi of a row.
type partRow struct{ at, lo, hi int }

func (a *List) stretches(lo, hi int) (list []stretch) {
	rows, heads := a.op.Out.Dims[2], a.op.Out.Dims[1]
	for lo < hi {
		row, from := lo/a.width, lo%a.width
		n := min(a.width-from, hi-lo)
		head := row / rows
		if k := len(list) - 1; k < 0 || list[k].batch*heads+list[k].of != head {
			list = append(list, stretch{batch: head / heads, of: head % heads})
		}
		s := &list[len(list)-1]
		s.rows = append(s.rows, partRow{row % rows, from, from + n})
		lo += n
	}
	return list
}

// ends are the first row of a stretch, and that after the last.
func (s stretch) ends() (from, to int) { return s.rows[0].at, s.rows[len(s.rows)-1].at + 1 }

// Needs gathers what the elements from up to to of the lists of a range are.
func (a *List) Needs(lo, hi, from, to int) []gather.Gather {
	var all []gather.Gather
	rows := func(operand, batch, head, first, end int) {
		all = append(all, gather.Rows(operand, a.in[operand], batch, head, 1, first, end))
	}
	for _, s := range a.stretches(lo, hi) {
		first, end := s.ends()
		for operand := range a.in { // the rows that it is about
			if a.ofKeys(operand) == a.byKeys() {
				rows(operand, s.batch, s.of, first, end)
			}
		}
		if a.byKeys() {
			a.heads(from, to, a.head.First(first), func(h, lo, hi int) {
				for operand := range a.in {
					if !a.ofKeys(operand) {
						rows(operand, s.batch, s.of*a.group+h, lo, hi)
					}
				}
			})
			continue
		}
		for e := from; e < to; e++ {
			keys, stop := a.block(e % a.blocks())
			if keys >= a.head.Visited(end-1) {
				continue
			}
			rows(1, s.batch, s.of/a.group, keys, stop)
			if a.hasValues(e) {
				rows(2, s.batch, s.of/a.group, keys, stop)
			}
		}
	}
	return all
}

// hasValues reports whether an entry of the list of a query has values, and not keys alone.
func (a *List) hasValues(e int) bool {
	return a.op.Kind != program.CausalAttentionLSE && (!a.forward() || e >= a.blocks())
}

// heads calls f for the queries from first on among entries from up to to of a list, head by head.
func (a *List) heads(from, to, first int, f func(h, lo, hi int)) {
	for h := from / a.head.Queries; h*a.head.Queries < to; h++ {
		lo, hi := max(from-h*a.head.Queries, first), min(to-h*a.head.Queries, a.head.Queries)
		if lo < hi {
			f(h, lo, hi)
		}
	}
}

// kept is the number of float32 that are kept of a row after at entries of its list, some but not all.
func (a *List) kept(r partRow, at int) int {
	n := r.hi - r.lo
	switch {
	case a.byKeys():
		return 2 * n // sums of whole chunks, then the chains
	case !a.forward():
		return n
	case at <= a.blocks():
		return 1 // the largest score
	case a.op.Kind == program.CausalAttentionLSE:
		n = 0
	}
	return 1 + kernel.SumState(a.head.Seen(r.at)) + n
}

// StateBytes is the size of the state of a range after at entries.
func (a *List) StateBytes(lo, hi, at int) (n int) {
	for _, s := range a.stretches(lo, hi) {
		for _, r := range s.rows {
			n += 4 * a.kept(r, at)
		}
	}
	return n
}

// Volume bounds the elements of operands that n elements of the output, at most a leaf, are computed from, along so
// many entries. It does not overflow: an operand of a verified program has less than 2^48 elements.
func (a *List) Volume(n, along int) int {
	heads, rows := n/view.Elements(a.op.Out.Dims[2:])+2, n/a.width+2
	each := 2*a.head.Width + 2
	own := rows * each
	switch {
	case a.byKeys():
	case a.forward(): // half of the entries have no values
		each = 3 * attention.Block * a.head.Width / 2
	default:
		each = 2 * attention.Block * a.head.Width
	}
	return heads*along*each + own
}

// Work bounds the multiply-adds of n elements, as Volume does.
func (a *List) Work(n, along int) int {
	scores := (n/a.width + 2) * a.head.Width
	switch {
	case a.byKeys():
		return along * (2*scores + n)
	case a.forward():
		return along * attention.Block * (scores + n)
	}
	return along * attention.Block * (2*scores + n)
}
