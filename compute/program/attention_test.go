package program

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// attention adds an operator of attention, and those that share its work.
func (w *writer) attention(k Kind) Value {
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
	if (k == CausalAttentionGradK || k == CausalAttentionGradV) && r.IntN(2) == 0 {
		key = query + r.IntN(4)
	}
	rows := f(batch, groups*each, queries)
	q, kk, v := w.headed(rows.Dims, width), w.headed([]int{batch, groups, keys}, width),
		w.headed([]int{batch, groups, keys}, width)
	do := w.headed(rows.Dims, width)
	make := func(k Kind, operands ...Value) Value { return w.keep(b.Attention(k, query, key, operands...)) }
	switch k {
	case CausalAttention, CausalAttentionLSE:
		if r.IntN(2) == 0 {
			make(CausalAttentionLSE, q, kk)
		}
		o := make(CausalAttention, q, kk, v)
		if k == CausalAttentionLSE {
			return make(k, q, kk)
		}
		return o
	}
	lse, delta := w.like(rows), w.like(rows)
	last := make(CausalAttentionGradV, q, kk, do, lse)
	if key <= query && r.IntN(2) == 0 {
		last = make(CausalAttentionGradQ, q, kk, v, do, lse, delta)
	}
	if k != CausalAttentionGradV {
		last = make(CausalAttentionGradK, q, kk, v, do, lse, delta)
	}
	if k == CausalAttentionGradQ {
		last = make(k, q, kk, v, do, lse, delta)
	}
	return last
}

// headed returns a value [heads..., width], often a view of rows with heads side by side.
func (w *writer) headed(dims []int, width int) Value {
	if w.r.IntN(2) == 0 {
		return w.like(tensor.Make(tensor.Float32, dims[0], dims[1], dims[2], width))
	}
	x := w.like(tensor.Make(tensor.Float32, dims[0], dims[2], dims[1], width))
	return w.keep(w.b.Transpose(x, 0, 2, 1, 3))
}

// naiveAttention computes an operator of attention as attention.Head says, element by element.
type naiveAttention struct {
	op            *Operator
	queries, keys int
	width, group  int
	query, key    int
	q, k, v, do   []float32 // of one head
	lse, delta    []float32
	heads, groups int
}

func evalAttention(op *Operator, in []naive) naive {
	q, k := in[0].shape, in[1].shape
	a := naiveAttention{op: op, queries: q.Dims[2], keys: k.Dims[2], width: q.Dims[3], query: int(op.Ints[0]),
		key:   int(op.Ints[1]),
		heads: q.Dims[1], groups: k.Dims[1], group: q.Dims[1] / k.Dims[1]}
	out := naiveOf(op.Out)
	for b := range q.Dims[0] {
		for h := range a.heads {
			head := func(i, rows, width int) []float32 { return in[i].f[(b*a.heads+h)*rows*width:][:rows*width] }
			shared := func(i int) []float32 { return in[i].f[(b*a.groups+h/a.group)*a.keys*a.width:][:a.keys*a.width] }
			a.q, a.k = head(0, a.queries, a.width), shared(1)
			switch op.Kind {
			case CausalAttention:
				a.v = shared(2)
			case CausalAttentionGradQ, CausalAttentionGradK:
				a.v, a.do, a.lse, a.delta = shared(2), head(3, a.queries, a.width), head(4, a.queries, 1), head(5, a.queries, 1)
			case CausalAttentionGradV:
				a.do, a.lse = head(2, a.queries, a.width), head(3, a.queries, 1)
			}
			if op.Kind == CausalAttentionGradK || op.Kind == CausalAttentionGradV {
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
	return detmath.Exp(a.score(i, j) - a.lse[i])
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
		if a.op.Kind == CausalAttentionGradQ {
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
			weights[j] = detmath.Exp(a.score(i, j) - top)
		}
		sum := kernel.Portable.Sum(weights[:seen])
		if a.op.Kind == CausalAttentionLSE {
			out[i] = top + detmath.Log(sum)
			continue
		}
		for d := range a.width {
			out[i*a.width+d] = a.over(i, d, func(j int) float32 { return weights[j] }, a.v) * (1 / sum)
		}
	}
}

func (a *naiveAttention) byKey(out []float32, has bool) {
	weight, rows := a.p, a.do
	if a.op.Kind == CausalAttentionGradK {
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

// trainingAttention is a program of attention and its gradients as a model has them.
func trainingAttention(t *testing.T, batch, heads, groups, length, width int) (*Program, map[string]*tensor.Tensor) {
	w := &writer{t: t, b: NewBuilder()}
	headed := func(name string, heads int) Value {
		x := w.b.Input(name, tensor.Make(tensor.Float32, batch, length, heads, width))
		return w.keep(w.b.Transpose(x, 0, 2, 1, 3))
	}
	q, k, v, do := headed("q", heads), headed("k", groups), headed("v", groups), headed("do", heads)
	o := w.keep(w.b.Attention(CausalAttention, 0, 0, q, k, v))
	lse := w.keep(w.b.Attention(CausalAttentionLSE, 0, 0, q, k))
	delta := w.keep(w.b.ReduceSum(w.keep(w.b.Binary(Mul, do, o)), 3))
	out := []Value{o, lse}
	for _, k3 := range []Kind{CausalAttentionGradQ, CausalAttentionGradK} {
		out = append(out, w.keep(w.b.Attention(k3, 0, 0, q, k, v, do, lse, delta)))
	}
	out = append(out, w.keep(w.b.Attention(CausalAttentionGradV, 0, 0, q, k, do, lse)))
	for i, v := range out {
		w.b.Output(string(rune('A'+i)), v)
	}
	p, err := w.b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(17, 1))
	in := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		in[i.Name] = randomTensor(r, i.Shape, false)
	}
	return p, in
}

func TestAttentionOfTrainingGivesTheSpecifiedBits(t *testing.T) {
	for _, path := range kernel.Paths() {
		if err := kernel.Select(path.String()); err != nil {
			t.Fatal(err)
		}
		p, in := trainingAttention(t, 2, 4, 2, 130, 8)
		checkProgram(t, p, in)
	}
	if err := kernel.Select(""); err != nil {
		t.Fatal(err)
	}
}

// TestAttentionSharesWork demands one step for what has operands in common, and rows that are written where they are
// read, side by side: no copies.
func TestAttentionSharesWork(t *testing.T) {
	p, _ := trainingAttention(t, 2, 4, 2, 130, 8)
	attention := 0
	for _, s := range lower(p, 0).steps {
		if s.group == nil && len(s.writes) > 1 {
			attention++
		}
	}
	if attention != 2 {
		t.Errorf("%d steps with several results, want one forward and one backward", attention)
	}
}

// TestAttentionSharesNoOtherOperands has gradients of queries and of keys with different values and deltas, after one
// of values, which has neither.
func TestAttentionSharesNoOtherOperands(t *testing.T) {
	w := &writer{t: t, b: NewBuilder()}
	in := func(name string, dims ...int) Value { return w.b.Input(name, tensor.Make(tensor.Float32, dims...)) }
	q, k, v, v2, do := in("q", 1, 2, 5, 3), in("k", 1, 1, 5, 3), in("v", 1, 1, 5, 3), in("v2", 1, 1, 5, 3),
		in("do", 1, 2, 5, 3)
	lse, delta, delta2 := in("lse", 1, 2, 5), in("delta", 1, 2, 5), in("delta2", 1, 2, 5)
	w.b.Output("dv", w.keep(w.b.Attention(CausalAttentionGradV, 0, 0, q, k, do, lse)))
	w.b.Output("dq", w.keep(w.b.Attention(CausalAttentionGradQ, 0, 0, q, k, v, do, lse, delta)))
	w.b.Output("dk", w.keep(w.b.Attention(CausalAttentionGradK, 0, 0, q, k, v2, do, lse, delta2)))
	p, err := w.b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(18, 1))
	given := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		given[i.Name] = randomTensor(r, i.Shape, false)
	}
	checkProgram(t, p, given)
}

// TestAttentionNeedsLittle bounds what a referee is given: rows of one head, and no others.
func TestAttentionNeedsLittle(t *testing.T) {
	f := func(dims ...int) tensor.Shape { return tensor.Make(tensor.Float32, dims...) }
	q, k, r := f(2, 12, 512, 64), f(2, 4, 512, 64), f(2, 12, 512)
	for _, c := range []struct {
		kind Kind
		in   []tensor.Shape
		out  tensor.Shape
		most int // leaves
	}{
		{CausalAttention, []tensor.Shape{q, k, k}, q, 1 + 2*32},
		{CausalAttentionGradQ, []tensor.Shape{q, k, k, q, r, r}, q, 2 + 2*32 + 2},
		{CausalAttentionGradK, []tensor.Shape{q, k, k, q, r, r}, k, 2*3*32 + 2 + 2*4},
		{CausalAttentionGradV, []tensor.Shape{q, k, q, r}, k, 2*3*32 + 1 + 4},
	} {
		op := &Operator{Kind: c.kind, Out: c.out, Ints: []int64{0, 0}}
		for leaf := range c.out.Leaves() {
			lo, hi := c.out.LeafRange(leaf)
			need, err := Need(op, c.in, lo, hi, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, leaves := range need {
				n += len(leaves)
			}
			if n > c.most {
				t.Fatalf("leaf %d of %s needs %d leaves, more than %d", leaf, c.kind, n, c.most)
			}
		}
	}
}

func TestAttentionRefuses(t *testing.T) {
	b := NewBuilder()
	in := func(dims ...int) Value {
		return b.Input(string(rune('a'+len(b.p.Ops))), tensor.Make(tensor.Float32, dims...))
	}
	q, k, other, rows := in(1, 4, 5, 8), in(1, 2, 6, 8), in(1, 3, 6, 8), in(1, 4, 5)
	for what, make := range map[string]func() (Value, error){
		"a head between groups":   func() (Value, error) { return b.Attention(CausalAttention, 6, 0, q, other, other) },
		"other values than keys":  func() (Value, error) { return b.Attention(CausalAttention, 6, 0, q, k, q) },
		"a query before all keys": func() (Value, error) { return b.Attention(CausalAttention, 0, 1, q, k, k) },
		"a position below zero":   func() (Value, error) { return b.Attention(CausalAttentionGradV, -1, 0, q, k, q, rows) },
		"other gradients than rows": func() (Value, error) {
			return b.Attention(CausalAttentionGradQ, 6, 0, q, k, k, q, rows,
				q)
		},
		"rank 3":       func() (Value, error) { return b.Attention(CausalAttentionLSE, 0, 0, rows, rows) },
		"another kind": func() (Value, error) { return b.Attention(Add, 0, 0, q, q) },
	} {
		if _, err := make(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.Attention(CausalAttentionGradV, 0, 64, q, k, q, rows); err != nil {
		t.Errorf("keys after all queries have gradients, zeros: %v", err)
	}
}

func TestAttentionFlopsCountWhatIsSeen(t *testing.T) {
	for query := range 9 {
		for key := range 9 {
			for _, keys := range []int{1, 2, 5} {
				q, k := tensor.Make(tensor.Float32, 1, 1, 4, 3), tensor.Make(tensor.Float32, 1, 1, keys, 3)
				want := uint64(0)
				for i := range 4 {
					for j := range keys {
						if key+j <= query+i {
							want++
						}
					}
				}
				if got := attentionPairs(&Operator{Ints: []int64{int64(query), int64(key)}}, q, k); got != want {
					t.Fatalf("query at %d, %d keys at %d: %d pairs, want %d", query, keys, key, got, want)
				}
			}
		}
	}
}
