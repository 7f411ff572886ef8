package attend

import (
	"slices"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
)

// Follow returns the state of a range after the entries from up to to, given the state before them; after the last
// entry, the elements.
func (a *List) Follow(numerics uint32, in []*tensor.Partial, state []byte, lo, hi, from, to int) ([]byte, error) {
	var out []float32
	before := tensor.CopyF32(state)
	for _, s := range a.stretches(lo, hi) {
		x := attending{List: a, stretch: s, operands: in, math: elementary.Math{Path: kernel.Portable, Version: numerics}}
		for _, r := range s.rows {
			row := make([]float32, a.most(r))
			if from > 0 {
				n := a.kept(r, from)
				copy(row, before[:n])
				before = before[n:]
			}
			x.state = append(x.state, row)
		}
		if err := x.run(from, to); err != nil {
			return nil, err
		}
		for i, r := range s.rows {
			if to == a.Length() {
				out = append(out, x.end(r, x.state[i])...)
			} else {
				out = append(out, x.state[i][:a.kept(r, to)]...)
			}
		}
	}
	return tensor.FromF32(out, len(out)).Bytes(), nil
}

// most is the number of float32 that are ever kept of a row.
func (a *List) most(r partRow) int { return a.kept(r, a.Length()) }

// attending computes a stretch.
type attending struct {
	*List
	stretch
	operands []*tensor.Partial
	state    [][]float32 // of each row
	math     elementary.Math
}

// read returns rows of an operand, one after the other.
func (x *attending) read(operand, head, from, to int) ([]float32, error) {
	g := gather.Rows(operand, x.in[operand], x.batch, head, 1, from, to)
	t, err := g.Read(x.operands[operand])
	if err != nil {
		return nil, err
	}
	return t.F32(), nil
}

func (x *attending) run(from, to int) error {
	if x.byKeys() {
		return x.keys(from, to)
	}
	for e := from; e < to; e++ {
		lo, hi := x.block(e % x.blocks())
		_, end := x.ends()
		if lo >= x.head.Visited(end-1) {
			continue
		}
		if err := x.queries(e, lo, hi); err != nil {
			return err
		}
	}
	return nil
}

// queries continues the rows of queries over the keys lo to hi of an entry.
func (x *attending) queries(e, lo, hi int) error {
	k, err := x.read(1, x.of/x.group, lo, hi)
	if err != nil {
		return err
	}
	var v []float32
	if x.hasValues(e) {
		if v, err = x.read(2, x.of/x.group, lo, hi); err != nil {
			return err
		}
	}
	for i, r := range x.rows {
		if lo >= x.head.Visited(r.at) {
			continue
		}
		q, err := x.read(0, x.of, r.at, r.at+1)
		if err != nil {
			return err
		}
		seen := max(0, min(hi, x.head.Seen(r.at))-lo)
		weights := make([]float32, hi-lo)
		for j := range seen {
			weights[j] = x.score(q, k[j*x.head.Width:])
		}
		switch {
		case !x.forward():
			if err = x.gradQ(r, x.state[i], weights, seen, lo, k, v); err != nil {
				return err
			}
		case e < x.blocks():
			x.largest(x.state[i], weights[:seen], lo)
		default:
			x.sum(r, x.state[i], weights, seen, lo, v)
		}
	}
	return nil
}

// score is the product of a query and a key.
func (x *attending) score(q, k []float32) float32 {
	sum, _ := matmul.Continue(0, 0, q, k, 1, x.head.Width, 0, x.head.Width, false)
	return sum
}

// largest keeps the largest of the scores, and of those before.
func (x *attending) largest(state, scores []float32, lo int) {
	if len(scores) == 0 {
		return
	}
	if lo > 0 {
		scores = append(slices.Clone(state[:1]), scores...)
	}
	kernel.Portable.MaxRows(state[:1], scores, len(scores))
}

// sum adds the weights of the keys from lo on, of which some are seen, to their sum, and the values to the output.
func (x *attending) sum(r partRow, state, weights []float32, seen, lo int, v []float32) {
	w := weights[:seen]
	for j := range w {
		w[j] -= state[0]
	}
	x.math.Exp(w, w)
	lanes := state[1 : 1+kernel.SumState(x.head.Seen(r.at))]
	for j, weight := range w {
		kernel.SumPart(lanes, lo+j, weight)
	}
	if v != nil {
		x.add(state[1+len(lanes):], r, weights, v, lo)
	}
}

// add adds the products of a block, of the keys from lo on, to the elements of a row.
func (x *attending) add(out []float32, r partRow, weights, rows []float32, lo int) {
	for d := r.lo; d < r.hi; d++ {
		c := matmul.Chain(0, weights, 1, rows[d:], x.head.Width, len(weights))
		if lo > 0 {
			c += out[d-r.lo]
		}
		out[d-r.lo] = c
	}
}

// gradQ adds a block to a row of the gradient of the queries.
func (x *attending) gradQ(r partRow, state, scores []float32, seen, lo int, k, v []float32) error {
	do, err := x.read(x.operand('o'), x.of, r.at, r.at+1)
	if err != nil {
		return err
	}
	lse, err := x.read(x.operand('l'), x.of, r.at, r.at+1)
	if err != nil {
		return err
	}
	delta, err := x.read(x.operand('d'), x.of, r.at, r.at+1)
	if err != nil {
		return err
	}
	p := scores[:seen]
	for j := range p {
		p[j] -= lse[0]
	}
	x.math.Exp(p, p)
	for j := range p {
		p[j] *= x.score(do, v[j*x.head.Width:]) - delta[0]
	}
	x.add(state, r, scores, k, lo)
	return nil
}

// end returns the elements of a row from the state after the last entry.
func (x *attending) end(r partRow, state []float32) []float32 {
	if !x.forward() {
		return state[:r.hi-r.lo]
	}
	seen := x.head.Seen(r.at)
	lanes := state[1 : 1+kernel.SumState(seen)]
	out := state[1+len(lanes):]
	total := kernel.SumEnd(lanes, seen)
	if x.op.Kind == program.CausalAttentionLSE {
		return []float32{state[0] + x.math.Scalars().Log(total)}
	}
	scale := 1 / total
	for d := range out {
		out[d] *= scale
	}
	return out
}

// keys continues the rows of keys over entries from up to to.
func (x *attending) keys(from, to int) (err error) {
	first, _ := x.ends()
	x.heads(from, to, x.head.First(first), func(h, lo, hi int) {
		if err == nil {
			err = x.keysOf(h, lo, hi)
		}
	})
	return err
}

// keysOf continues the rows of keys over the queries lo to hi of one head.
func (x *attending) keysOf(h, lo, hi int) error {
	head := x.of*x.group + h
	operands := make([][]float32, len(x.in))
	for i := range operands {
		var err error
		if x.ofKeys(i) {
			first, end := x.ends()
			operands[i], err = x.read(i, x.of, first, end)
		} else {
			operands[i], err = x.read(i, head, lo, hi)
		}
		if err != nil {
			return err
		}
	}
	q, do := operands[0], operands[x.operand('o')]
	for i, r := range x.rows {
		skip := max(0, x.head.First(r.at)-lo) // queries of another block
		if skip >= hi-lo {
			continue
		}
		p := x.shares(operands, r.at, lo, hi)
		rows := do
		if x.op.Kind == program.CausalAttentionGradK {
			rows = q
		}
		x.chain(r, x.state[i], p[skip:], rows[skip*x.head.Width:], h, lo+skip)
	}
	return nil
}

// shares are, for a key and the queries lo to hi of a head, their weights, or of the gradient of the keys what follows
// from them.
func (x *attending) shares(operands [][]float32, key, lo, hi int) []float32 {
	first, _ := x.ends()
	at := (key - first) * x.head.Width
	q, k, do, lse := operands[0], operands[1][at:], operands[x.operand('o')], operands[x.operand('l')]
	p := make([]float32, hi-lo)
	for i := range p {
		p[i] = x.score(q[i*x.head.Width:], k) - lse[i]
	}
	x.math.Exp(p, p)
	for i := range p {
		switch {
		case key >= x.head.Seen(lo+i):
			p[i] = 0
		case x.op.Kind == program.CausalAttentionGradK:
			p[i] *= x.score(do[i*x.head.Width:], operands[2][at:]) - operands[x.operand('d')][i]
		}
	}
	return p
}

// chain continues the products of a row of keys over the queries of a head from lo on: chunks as in matmul.Gemm, whose
// first term is what the heads before have given.
func (x *attending) chain(r partRow, state, shares, rows []float32, h, lo int) {
	n, first := r.hi-r.lo, x.head.First(r.at)
	sums, chains := state[:n], state[n:]
	for e := range n {
		sums[e], chains[e] = matmul.Continue(sums[e], chains[e], shares, rows[r.lo+e:], x.head.Width,
			x.head.Queries-first, lo-first, lo-first+len(shares), h > 0)
	}
}
