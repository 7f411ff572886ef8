package attention

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/kernel/matmul"
)

// chain is the FMA32 chain from +0 over n elements.
func chain(n int, x, y func(i int) float32) float32 {
	sum := float32(0)
	for i := range n {
		sum = matmul.FMA32(x(i), y(i), sum)
	}
	return sum
}

// chunked is a sum as Gemm has it over n elements, added to *acc if it has a first term.
func chunked(acc *float32, has bool, n int, x, y func(i int) float32) {
	if n == 0 && !has {
		*acc = 0
	}
	for lo := 0; lo < n; lo += matmul.ChunkK {
		sum := chain(min(matmul.ChunkK, n-lo),
			func(i int) float32 { return x(lo + i) }, func(i int) float32 { return y(lo + i) })
		if has {
			*acc += sum
		} else {
			*acc, has = sum, true
		}
	}
}

// attentionCase is operands and results of a Head.
type attentionCase struct {
	Head
	q, k, v, do, o, dq, dk, dv Rows
	lse, delta                 []float32
}

func (c *attentionCase) dot(x []float32, y []float32) (sum float32) {
	chunked(&sum, false, c.Width, func(i int) float32 { return x[i] }, func(i int) float32 { return y[i] })
	return sum
}

// overKeys is the sum over keys of the weights times element d of the rows.
func (c *attentionCase) overKeys(i int, weights []float32, rows Rows, d int) (total float32) {
	for lo := 0; lo < c.Keys; {
		block := (c.Key + lo) / Block
		hi := min(c.Keys, (block+1)*Block-c.Key)
		if block*Block > c.Query+i {
			break
		}
		sum := chain(hi-lo, func(j int) float32 { return weights[lo+j] }, func(j int) float32 { return rows.from(lo + j)[d] })
		if lo == 0 {
			total = sum
		} else {
			total += sum
		}
		lo = hi
	}
	return total
}

// naive computes the results element by element, as the documentation says; dk and dv get has as first terms.
func (c *attentionCase) naive(has bool) {
	p, ds := make([][]float32, c.Queries), make([][]float32, c.Queries)
	for i := range c.Queries {
		w, s := make([]float32, c.Keys), make([]float32, c.Keys)
		p[i], ds[i] = make([]float32, c.Keys), make([]float32, c.Keys)
		seen := 0
		for j := range c.Keys {
			if c.Key+j <= c.Query+i {
				s[j] = c.dot(c.q.from(i), c.k.from(j))
				seen = j + 1
			}
		}
		var sum float32
		if c.Query >= c.Key {
			top := s[0]
			for _, x := range s[:seen] {
				top = max(top, x)
			}
			for j := range seen {
				w[j] = c.Scalars().Exp(s[j] - top)
			}
			sum = kernel.Portable.Sum(w[:seen])
			c.lse[i] = top + c.Scalars().Log(sum)
		}
		for j := range seen {
			p[i][j] = c.Scalars().Exp(s[j] - c.lse[i])
			ds[i][j] = p[i][j] * (c.dot(c.do.from(i), c.v.from(j)) - c.delta[i])
		}
		if c.Query < c.Key {
			continue
		}
		for d := range c.Width {
			c.o.from(i)[d] = c.overKeys(i, w, c.v, d) * (1 / sum)
			c.dq.from(i)[d] = c.overKeys(i, ds[i], c.k, d)
		}
	}
	for j := range c.Keys {
		first := min(c.Queries, max(0, (c.Key+j)/Block*Block-c.Query))
		at := func(m [][]float32) func(int) float32 { return func(i int) float32 { return m[first+i][j] } }
		for d := range c.Width {
			chunked(&c.dk.from(j)[d], has, c.Queries-first, at(ds), func(i int) float32 { return c.q.from(first + i)[d] })
			chunked(&c.dv.from(j)[d], has, c.Queries-first, at(p), func(i int) float32 { return c.do.from(first + i)[d] })
		}
	}
}

func (c attentionCase) withResults(lse []float32) *attentionCase {
	result := func(rows int) Rows { // rows with gaps, which must not change
		r := Rows{Data: make([]float32, rows*(c.Width+3)), Stride: c.Width + 3}
		for i := range r.Data {
			r.Data[i] = 42
		}
		return r
	}
	c.o, c.dq, c.dk, c.dv = result(c.Queries), result(c.Queries), result(c.Keys), result(c.Keys)
	c.lse = append([]float32{}, lse...)
	return &c
}

func TestAttentionBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for name, value := range kerneltest.Values {
		for try := range 24 {
			a := Head{Queries: 1 + r.IntN(150), Keys: 1 + r.IntN(150), Width: 1 + r.IntN(20), Query: r.IntN(80)}
			switch try % 3 {
			case 0: // as in training
				a.Query, a.Keys = 0, a.Queries
			case 1:
				a.Key = r.IntN(a.Query + 1)
			case 2: // only gradients of keys
				a.Key = a.Query + r.IntN(40)
			}
			if try == 0 {
				a = Head{Queries: matmul.ChunkK + 70, Keys: matmul.ChunkK + 70, Width: 3}
			}
			rows := func(n int) Rows {
				x := Rows{Stride: a.Width + r.IntN(3)}
				x.Data = make([]float32, n*x.Stride)
				for i := range x.Data {
					x.Data[i] = value(r)
				}
				return x
			}
			c := attentionCase{Head: a, q: rows(a.Queries), k: rows(a.Keys), v: rows(a.Keys), do: rows(a.Queries),
				delta: rows(a.Queries).Data}
			lse := rows(a.Queries).Data[:a.Queries]
			has := try%2 == 1
			c.Version = []uint32{kernel.Version1, kernel.Version2}[try/3%2]
			want := c.withResults(lse)
			want.naive(has)
			for _, path := range kernel.Paths() {
				checkAttention(t, fmt.Sprintf("%s, try %d, %+v, %s", name, try, a, path), path, c.withResults(lse), want, has)
			}
		}
	}
}

func checkAttention(t *testing.T, what string, path kernel.Path, got, want *attentionCase, has bool) {
	t.Helper()
	got.Path = path
	if got.Query >= got.Key {
		got.Forward(got.o, got.lse, got.q, got.k, got.v, make([]float32, got.ForwardScratch()))
		got.Backward(got.dq, got.dk, got.dv, got.q, got.k, got.v, got.do, got.lse, got.delta,
			make([]float32, got.BackwardScratch()), has)
	} else {
		got.Backward(Rows{}, got.dk, got.dv, got.q, got.k, got.v, got.do, got.lse, got.delta,
			make([]float32, got.BackwardScratch()), has)
	}
	for _, part := range []struct {
		name      string
		got, want []float32
	}{{"o", got.o.Data, want.o.Data}, {"lse", got.lse, want.lse}, {"dq", got.dq.Data, want.dq.Data},
		{"dk", got.dk.Data, want.dk.Data}, {"dv", got.dv.Data, want.dv.Data}} {
		for i := range part.want {
			if !kerneltest.Same(part.got[i], part.want[i]) {
				t.Fatalf("%s: element %d of %s is %x, want %x", what, i, part.name, part.got[i], part.want[i])
			}
		}
	}
}

// TestAttentionWantsWhatIsAsked computes the results one at a time.
func TestAttentionWantsWhatIsAsked(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	a := Head{Math: elementary.Math{Version: kernel.Version1}, Queries: 100, Keys: 100, Width: 8}
	rows := func() Rows {
		x := Rows{Data: make([]float32, a.Queries*a.Width), Stride: a.Width}
		for i := range x.Data {
			x.Data[i] = float32(r.NormFloat64())
		}
		return x
	}
	c := attentionCase{Head: a, q: rows(), k: rows(), v: rows(), do: rows(), delta: rows().Data}
	want, got := c.withResults(make([]float32, a.Queries)), c.withResults(make([]float32, a.Queries))
	want.naive(false)
	forward, backward := make([]float32, a.ForwardScratch()), make([]float32, a.BackwardScratch())
	a.Forward(got.o, nil, c.q, c.k, c.v, forward)
	a.Forward(Rows{}, got.lse, c.q, c.k, Rows{}, forward)
	a.Backward(got.dq, Rows{}, Rows{}, c.q, c.k, c.v, c.do, got.lse, c.delta, backward, false)
	a.Backward(Rows{}, got.dk, Rows{}, c.q, c.k, c.v, c.do, got.lse, c.delta, backward, false)
	a.Backward(Rows{}, Rows{}, got.dv, c.q, c.k, Rows{}, c.do, got.lse, nil, backward, false)
	for _, part := range [][2][]float32{{got.o.Data, want.o.Data}, {got.lse, want.lse}, {got.dq.Data, want.dq.Data},
		{got.dk.Data, want.dk.Data}, {got.dv.Data, want.dv.Data}} {
		for i := range part[1] {
			if !kerneltest.Same(part[0][i], part[1][i]) {
				t.Fatalf("element %d is %x, want %x", i, part[0][i], part[1][i])
			}
		}
	}
}

func BenchmarkAttention(b *testing.B) {
	a := Head{Queries: 256, Keys: 256, Width: 64}
	rows := func() Rows { return Rows{Data: make([]float32, a.Queries*a.Width), Stride: a.Width} }
	c := attentionCase{Head: a, q: rows(), k: rows(), v: rows(), do: rows(), lse: make([]float32, 256),
		delta: make([]float32, 256)}
	got := c.withResults(c.lse)
	forward, backward := make([]float32, a.ForwardScratch()), make([]float32, a.BackwardScratch())
	b.Run("forward", func(b *testing.B) {
		for range b.N {
			a.Forward(got.o, got.lse, c.q, c.k, c.v, forward)
		}
	})
	b.Run("backward", func(b *testing.B) {
		for range b.N {
			a.Backward(got.dq, got.dk, got.dv, c.q, c.k, c.v, c.do, got.lse, c.delta, backward, false)
		}
	})
}
