// Package attention is causal attention of one head and its gradients, to the last bit the same whatever memory is at
// hand: it goes over blocks of keys, whose products are those of matmul, and never holds all scores.
package attention

import (
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/matmul"
)

// Block is the number of key positions that attention takes at a time. It is part of the numerics.
const Block = 64

// attentionRows is the number of queries whose scores Forward holds at a time: with 256 keys they fit the second-level
// cache, and each packed block of keys serves many rows.
const attentionRows = 256

// Rows is rows of float32: row i has the elements from Data[i*Stride] on. Nil Data as a result means: not wanted.
type Rows struct {
	Data   []float32
	Stride int
}

func (r Rows) from(i int) []float32 { return r.Data[min(i*r.Stride, len(r.Data)):] }

// Head is causal attention of one head (Vaswani et al. 2017, section 3.2) and its gradients. Query i stands at the
// position Query+i, key j at Key+j, and a query sees the keys at its own position and before.
//
// Positions are cut in blocks of Block, from 0 on. A query visits the blocks of keys up to its own, also the
// keys of it that it does not see. A sum over keys is: of each block that is visited an FMA32 chain from +0 in
// ascending order; then the sums of the blocks are added to the first one in ascending order. A sum over queries is
// that of matmul.Gemm over the queries that visit the block of the key. With s the FMA32 chains over the Width elements
// (as Gemm's K) of q and k:
//
//	m = Max of s over the keys seen      w = Exp(s-m) where seen, else 0      l = Sum of w over the keys seen
//	o = (sum over keys of w*v) * (1/l)   lse = m + Log(l)
//
// and with p = Exp(s-lse) where seen, else 0, dp as s of do and v, and ds = p*(dp-delta) where seen, else 0:
//
//	dq = sum over keys of ds*k           dk = sum over queries of ds*q        dv = sum over queries of p*do
//
// The caller scales q, and gives delta, the sum of do*o over the elements of a row. No result depends on the memory
// that is at hand: scores of all queries and keys are never held together.
type Head struct {
	elementary.Math     // its Exp and Log are those below
	Queries, Keys   int // rows of q, o and do; rows of k and v
	Width           int // elements of a row
	Query, Key      int // positions of the first query and of the first key
}

// blocks calls f for each block of keys, with its range and the first query that visits it (Queries if none does).
func (a *Head) blocks(f func(lo, hi, first int)) {
	for lo := 0; lo < a.Keys; {
		hi := min(a.Keys, (a.Key+lo)/Block*Block+Block-a.Key)
		f(lo, hi, a.First(lo))
		lo = hi
	}
}

// First is the first query that visits the block of a key, Queries if none does.
func (a *Head) First(key int) int { return min(max(0, (a.Key+key)/Block*Block-a.Query), a.Queries) }

// Seen is the number of keys that query i sees.
func (a *Head) Seen(i int) int { return max(0, min(a.Keys, a.Query+i+1-a.Key)) }

// Visited is the number of keys up to the end of the last block that query i visits.
func (a *Head) Visited(i int) int {
	return min(a.Keys, ((a.Query+i)/Block+1)*Block-a.Key)
}

// product is the product of rows of a and those of b, or of their transposes.
func (a *Head) product(m, n, k int, x []float32, xRow, xCol int, y []float32, yRow, yCol int, out []float32,
	outRow int, add bool) {
	g := matmul.Gemm{M: m, N: n, K: k, A: x, ARow: xRow, ACol: xCol, B: y, BRow: yRow, BCol: yCol, C: out, CRow: outRow,
		Add: add, Path: a.Path}
	g.Run(1)
}

// ForwardScratch is the number of elements of memory that Forward needs.
func (a *Head) ForwardScratch() int { return min(a.Queries, attentionRows) * a.Keys }

// Forward computes o and lse, of which either may be nil. Every query must see a key: Query is at least Key.
func (a *Head) Forward(o Rows, lse []float32, q, k, v Rows, scratch []float32) {
	for lo := 0; lo < a.Queries; lo += attentionRows {
		hi := min(lo+attentionRows, a.Queries)
		width := a.Visited(hi - 1)
		a.blocks(func(from, to, first int) {
			if first = max(first, lo); first < hi {
				a.product(hi-first, to-from, a.Width, q.from(first), q.Stride, 1, k.from(from), 1, k.Stride,
					scratch[(first-lo)*width+from:], width, false)
			}
		})
		var rest [attentionRows]float32
		for i := lo; i < hi; i++ {
			rest[i-lo] = a.softmax(scratch[(i-lo)*width:][:width], i, lse)
		}
		if o.Data == nil {
			continue
		}
		a.blocks(func(from, to, first int) {
			if first = max(first, lo); first < hi {
				a.product(hi-first, a.Width, to-from, scratch[(first-lo)*width+from:], width, 1, v.from(from), v.Stride, 1,
					o.from(first), o.Stride, from > 0)
			}
		})
		for i := lo; i < hi; i++ {
			row, scale := o.from(i)[:a.Width], rest[i-lo]
			for d := range row {
				row[d] *= scale
			}
		}
	}
}

// softmax turns the scores of query i into w, sets its lse, and returns 1/l.
func (a *Head) softmax(row []float32, i int, lse []float32) float32 {
	see := row[:a.Seen(i)]
	var top [1]float32
	a.Path.MaxRows(top[:], see, len(see))
	for j := range see {
		see[j] -= top[0]
	}
	a.Exp(see, see)
	sum := a.Path.Sum(see)
	clear(row[len(see):a.Visited(i)])
	if lse != nil {
		lse[i] = top[0] + a.Scalars().Log(sum)
	}
	return 1 / sum
}

// BackwardScratch is the number of elements of memory that Backward needs.
func (a *Head) BackwardScratch() int { return 2 * a.Queries * min(a.Keys, Block) }

// Backward computes dq, dk and dv, of which any may be nil. With add, dk and dv are the first terms of their sums:
// those of the heads that share keys and values follow each other. dq needs Query to be at least Key.
func (a *Head) Backward(dq, dk, dv Rows, q, k, v, do Rows, lse, delta, scratch []float32, add bool) {
	a.blocks(func(from, to, first int) {
		n, w := a.Queries-first, to-from
		p, ds := scratch[:n*w], scratch[n*w:2*n*w]
		a.product(n, w, a.Width, q.from(first), q.Stride, 1, k.from(from), 1, k.Stride, p, w, false)
		a.probabilities(p, first, from, w, lse)
		if dv.Data != nil {
			a.product(w, a.Width, n, p, 1, w, do.from(first), do.Stride, 1, dv.from(from), dv.Stride, add)
		}
		if dq.Data == nil && dk.Data == nil {
			return
		}
		a.product(n, w, a.Width, do.from(first), do.Stride, 1, v.from(from), 1, v.Stride, ds, w, false)
		for i := range n {
			see := max(0, min(w, a.Seen(first+i)-from))
			row, share, mean := ds[i*w:][:w], p[i*w:][:w], delta[first+i]
			for j := range see {
				row[j] = share[j] * (row[j] - mean)
			}
			clear(row[see:])
		}
		if dk.Data != nil {
			a.product(w, a.Width, n, ds, 1, w, q.from(first), q.Stride, 1, dk.from(from), dk.Stride, add)
		}
		if dq.Data != nil {
			a.product(n, a.Width, w, ds, w, 1, k.from(from), k.Stride, 1, dq.from(first), dq.Stride, from > 0)
		}
	})
}

// probabilities turns scores of the queries from first on and the w keys from from on into p.
func (a *Head) probabilities(p []float32, first, from, w int, lse []float32) {
	rows := len(p) / w
	for i := range rows {
		shift := lse[first+i]
		for j, s := range p[i*w : (i+1)*w] {
			p[i*w+j] = s - shift
		}
	}
	a.Exp(p, p)
	for i := range min(rows, Block) { // later ones see all keys of the block
		clear(p[i*w+max(0, min(w, a.Seen(first+i)-from)) : (i+1)*w])
	}
}
