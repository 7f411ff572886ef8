package programtest

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// attention adds an operator of attention, and those that share its work.
func (w *writer) attention(k program.Kind) program.Value {
	b, r := w.b, w.r
	f := func(dims ...int) tensor.Shape { return tensor.Make(tensor.Float32, dims...) }
	batch, groups, each, width := 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(4)
	queries, query := 1+r.IntN(6), r.IntN(70)
	keys, key := 1+r.IntN(6), r.IntN(query+1)
	if r.IntN(3) == 0 { // more than a block
		keys, key = 70, 0
	}
	if r.IntN(2) == 0 { // as in training
		keys, query, key = queries, 0, 0
	}
	if (k == program.CausalAttentionGradK || k == program.CausalAttentionGradV) && r.IntN(2) == 0 {
		key = query + r.IntN(4)
	}
	rows := f(batch, groups*each, queries)
	q, kk, v := w.headed(rows.Dims, width), w.headed([]int{batch, groups, keys}, width),
		w.headed([]int{batch, groups, keys}, width)
	do := w.headed(rows.Dims, width)
	make := func(k program.Kind, operands ...program.Value) program.Value {
		return w.keep(b.Attention(k, query, key, operands...))
	}
	switch k {
	case program.CausalAttention, program.CausalAttentionLSE:
		if r.IntN(2) == 0 {
			make(program.CausalAttentionLSE, q, kk)
		}
		o := make(program.CausalAttention, q, kk, v)
		if k == program.CausalAttentionLSE {
			return make(k, q, kk)
		}
		return o
	}
	lse, delta := w.like(rows), w.like(rows)
	last := make(program.CausalAttentionGradV, q, kk, do, lse)
	if key <= query && r.IntN(2) == 0 {
		last = make(program.CausalAttentionGradQ, q, kk, v, do, lse, delta)
	}
	if k != program.CausalAttentionGradV {
		last = make(program.CausalAttentionGradK, q, kk, v, do, lse, delta)
	}
	if k == program.CausalAttentionGradQ {
		last = make(k, q, kk, v, do, lse, delta)
	}
	return last
}

// headed returns a value [heads..., width], often a view of rows with heads side by side.
func (w *writer) headed(dims []int, width int) program.Value {
	if w.r.IntN(2) == 0 {
		return w.like(tensor.Make(tensor.Float32, dims[0], dims[1], dims[2], width))
	}
	x := w.like(tensor.Make(tensor.Float32, dims[0], dims[2], dims[1], width))
	return w.keep(w.b.Transpose(x, 0, 2, 1, 3))
}

// naiveAttention computes an operator of attention as attention.Head says, element by element.
type naiveAttention struct {
	op            *program.Operator
	one           *elementary.Scalars
	queries, keys int
	width, group  int
	query, key    int
	q, k, v, do   []float32 // of one head
	lse, delta    []float32
	heads, groups int
}

func evalAttention(numerics uint32, op *program.Operator, in []naive) naive {
	q, k := in[0].shape, in[1].shape
	a := naiveAttention{op: op, one: elementary.Math{Version: numerics}.Scalars(), queries: q.Dims[2], keys: k.Dims[2],
		width: q.Dims[3], query: int(op.Ints[0]), key: int(op.Ints[1]),
		heads: q.Dims[1], groups: k.Dims[1], group: q.Dims[1] / k.Dims[1]}
	out := naiveOf(op.Out)
	for b := range q.Dims[0] {
		for h := range a.heads {
			head := func(i, rows, width int) []float32 { return in[i].f[(b*a.heads+h)*rows*width:][:rows*width] }
			shared := func(i int) []float32 { return in[i].f[(b*a.groups+h/a.group)*a.keys*a.width:][:a.keys*a.width] }
			a.q, a.k = head(0, a.queries, a.width), shared(1)
			switch op.Kind {
			case program.CausalAttention:
				a.v = shared(2)
			case program.CausalAttentionGradQ, program.CausalAttentionGradK:
				a.v, a.do, a.lse, a.delta = shared(2), head(3, a.queries, a.width), head(4, a.queries, 1), head(5, a.queries, 1)
			case program.CausalAttentionGradV:
				a.do, a.lse = head(2, a.queries, a.width), head(3, a.queries, 1)
			}
			if op.Kind == program.CausalAttentionGradK || op.Kind == program.CausalAttentionGradV {
				a.byKey(out.f[(b*a.groups+h/a.group)*a.keys*a.width:], h%a.group > 0)
			} else {
				a.byQuery(out.f[(b*a.heads+h)*a.queries*view.Elements(op.Out.Dims[3:]):])
			}
		}
	}
	return out
}

func (a *naiveAttention) dot(x, y []float32) float32 {
	sum := float32(0)
	for d := range a.width { // at most ChunkK in the tests
		sum = matmul.FMA32(x[d], y[d], sum)
	}
	return sum
}

func (a *naiveAttention) score(i, j int) float32 { return a.dot(a.q[i*a.width:], a.k[j*a.width:]) }

func (a *naiveAttention) p(i, j int) float32 {
	if a.key+j > a.query+i {
		return 0
	}
	return a.one.Exp(a.score(i, j) - a.lse[i])
}

func (a *naiveAttention) ds(i, j int) float32 {
	if a.key+j > a.query+i {
		return 0
	}
	return a.p(i, j) * (a.dot(a.do[i*a.width:], a.v[j*a.width:]) - a.delta[i])
}

// over sums weights times rows over the keys that query i visits, block by block.
func (a *naiveAttention) over(i, d int, weight func(j int) float32, rows []float32) float32 {
	total, sum, block := float32(0), float32(0), -1
	add := func(first bool) {
		if first {
			total = sum
		} else {
			total += sum
		}
	}
	blocks := 0
	for j := 0; j < a.keys && (a.key+j)/64 <= (a.query+i)/64; j++ {
		if at := (a.key + j) / 64; at != block {
			if block >= 0 {
				add(blocks == 1)
			}
			sum, block = 0, at
			blocks++
		}
		sum = matmul.FMA32(weight(j), rows[j*a.width+d], sum)
	}
	add(blocks == 1)
	return total
}

func (a *naiveAttention) byQuery(out []float32) {
	for i := range a.queries {
		if a.op.Kind == program.CausalAttentionGradQ {
			for d := range a.width {
				out[i*a.width+d] = a.over(i, d, func(j int) float32 { return a.ds(i, j) }, a.k)
			}
			continue
		}
		seen := min(a.keys, a.query+i+1-a.key)
		top, weights := a.score(i, 0), make([]float32, a.keys)
		for j := range seen {
			top = max(top, a.score(i, j))
		}
		for j := range seen {
			weights[j] = a.one.Exp(a.score(i, j) - top)
		}
		sum := kernel.Portable.Sum(weights[:seen])
		if a.op.Kind == program.CausalAttentionLSE {
			out[i] = top + a.one.Log(sum)
			continue
		}
		for d := range a.width {
			out[i*a.width+d] = a.over(i, d, func(j int) float32 { return weights[j] }, a.v) * (1 / sum)
		}
	}
}

func (a *naiveAttention) byKey(out []float32, has bool) {
	weight, rows := a.p, a.do
	if a.op.Kind == program.CausalAttentionGradK {
		weight, rows = a.ds, a.q
	}
	for j := range a.keys {
		first := max(0, (a.key+j)/64*64-a.query)
		if first >= a.queries {
			continue
		}
		for d := range a.width {
			sum := float32(0)
			for i := first; i < a.queries; i++ {
				sum = matmul.FMA32(weight(i, j), rows[i*a.width+d], sum)
			}
			if has {
				sum = out[j*a.width+d] + sum
			}
			out[j*a.width+d] = sum
		}
	}
}
