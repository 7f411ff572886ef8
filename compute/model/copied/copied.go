// Package copied says whether one model is a copy of another: equal, or changed in ways that keep what it computes,
// or nearly so. Hidden units and heads may be permuted, pairs of layers scaled against each other, units added, noise
// added to the weights, and adapters merged into them.
//
// The rows or the columns of a matrix are compared by their directions, each with that of the other model that is most
// like it: these changes keep the directions of one of the two, but for small angles. The same is done with the vectors
// that were learnt on top of a common base. A model whose residual stream is permuted or rotated keeps none of them; it
// has the same losses (Alike). The package finds no copy that was changed by more: see docs/security.md.
//
// All sums are in a fixed order and no product is fused with a sum, so that every machine has the same answer.
package copied

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// Limits of the comparison.
const (
	mostMatrices = 12 // of a model
	mostVectors  = 8  // of a matrix, along each of its dimensions
	leastLength  = 16 // of a vector: shorter ones of independent models may be alike
	likeness     = 0.8
	tuned        = 0.95 // likeness of the parts learnt on top of a base: tuning on one text has common directions
	direct       = 0.95 // of the vectors in the same place: others are not looked at
)

// Model is a model whose tensors are float32, by the names of Config.Tensors.
type Model struct {
	Config  architecture.Config
	Tensors map[string]*tensor.Tensor
}

// Found is how many matrices of two models were compared, and how many of them are alike: on top of a base, if there is
// one.
type Found struct {
	Compared, Alike int
	Tuned           bool
}

// Copy reports whether the models are copies: a quarter of the matrices is alike, and two. Independent models have
// none. A copy can change the directions of some: a scaled gain of a norm those of the layers after it. Of models that
// are tuned from one base half of the matrices are wanted: tuning with a small rate on one text makes up to a quarter
// alike.
func (f Found) Copy() bool {
	if f.Tuned {
		return f.Alike >= 2 && 2*f.Alike >= f.Compared
	}
	return f.Alike >= 2 && 4*f.Alike >= f.Compared
}

// Sample is the vectors of a model, drawn by a seed, with which others are compared: a small part of it, that is kept
// in its place.
type Sample struct {
	Seed     canon.Digest `cbor:"1,keyasint"`
	Matrices []Matrix     `cbor:"2,keyasint"` // in the order of Config.Tensors
}

// Matrix has some rows and columns of a matrix: float32, little endian.
type Matrix struct {
	Name    string `cbor:"1,keyasint"`
	Dims    [2]int `cbor:"2,keyasint"`
	Rows    []byte `cbor:"3,keyasint"`
	Columns []byte `cbor:"4,keyasint"`
}

// Take draws the sample of a model. A seed that is known before a model is made would let its author change the drawn
// vectors alone.
func Take(m Model, seed canon.Digest) Sample {
	s := Sample{Seed: seed}
	for _, n := range m.Config.Tensors() {
		if t := m.Tensors[n.Name]; t != nil && inner(m.Config, n) {
			drawn := ofMatrix(seed, n.Name)
			s.Matrices = append(s.Matrices, Matrix{n.Name, [2]int(t.Shape.Dims), rows(t).take(drawn), columns(t).take(drawn)})
		}
	}
	return s
}

// ofMatrix is the seed that draws the vectors of a matrix.
func ofMatrix(seed canon.Digest, name string) canon.Digest {
	return canon.Sum("starling/copied-matrix/1", seed[:], []byte(name))
}

// Compare compares the weights of a model with those of the sample of another. With a base, which may be nil, what each
// has learnt on top of it is compared. The seed of the sample draws which matrices are.
func (s Sample) Compare(b Model, base *Model) (f Found) {
	f.Tuned = base != nil
	var common []Matrix
	for _, a := range s.Matrices {
		if b.Tensors[a.Name] != nil && (base == nil || base.Tensors[a.Name] != nil) {
			common = append(common, a)
		}
	}
	for _, i := range sample(s.Seed, len(common), mostMatrices) {
		a := common[i]
		var from *tensor.Tensor
		if base != nil {
			from = base.Tensors[a.Name]
		}
		f.Compared++
		if alike(a, b.Tensors[a.Name], from, ofMatrix(s.Seed, a.Name)) {
			f.Alike++
		}
	}
	return f
}

// sample draws one place of each of some equal parts of n.
func sample(seed canon.Digest, n, parts int) (places []int) {
	parts = min(n, parts)
	for i := range parts {
		from, to := i*n/parts, (i+1)*n/parts
		d := canon.Sum("starling/copied-sample/1", seed[:], binary.BigEndian.AppendUint64(nil, uint64(i)))
		places = append(places, from+int(binary.BigEndian.Uint64(d[:])%uint64(to-from)))
	}
	return places
}

// inner reports whether a tensor is a matrix between hidden units. Embeddings are not compared: tokens and positions
// give those of independent models something in common.
func inner(c architecture.Config, n architecture.Named) bool {
	return len(n.Shape.Dims) == 2 && n.Name != c.EmbeddingName() && n.Name != c.OutputName() &&
		!strings.Contains(n.Name, "wpe") && !strings.Contains(n.Name, "position")
}

// matrix is a matrix, or its transpose.
type matrix struct {
	data               []float32
	count, length      int // of its vectors
	nextVector, nextIn int // distances in data
}

func rows(t *tensor.Tensor) matrix {
	return matrix{t.F32(), t.Shape.Dims[0], t.Shape.Dims[1], t.Shape.Dims[1], 1}
}

func columns(t *tensor.Tensor) matrix {
	return matrix{t.F32(), t.Shape.Dims[1], t.Shape.Dims[0], 1, t.Shape.Dims[1]}
}

// vector copies a vector of a matrix into x.
func (m matrix) vector(i int, x []float64) []float64 {
	x = x[:0]
	for j := range m.length {
		x = append(x, float64(m.data[i*m.nextVector+j*m.nextIn]))
	}
	return x
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += float64(x[i] * y[i]) // the conversion keeps the product from being fused with the sum
	}
	return sum
}

// cosine of the angle between two vectors; 0 if one is zero.
func cosine(x, y []float64) float64 {
	n := math.Sqrt(float64(dot(x, x) * dot(y, y)))
	if n == 0 {
		return 0
	}
	return dot(x, y) / n
}

// alike reports whether the rows or the columns of two matrices have the same directions.
func alike(a Matrix, b, base *tensor.Tensor, seed canon.Digest) bool {
	if len(b.Shape.Dims) != 2 || base != nil && !slices.Equal(a.Dims[:], base.Shape.Dims) {
		return false
	}
	of := func(drawn []byte, count int, view func(*tensor.Tensor) matrix) bool {
		if base == nil {
			return directions(drawn, count, view(b), nil, seed) >= likeness
		}
		from := view(base)
		return directions(drawn, count, view(b), &from, seed) >= tuned
	}
	return of(a.Rows, a.Dims[0], rows) || of(a.Columns, a.Dims[1], columns)
}

// take copies the vectors that a seed draws, if they can be compared.
func (m matrix) take(seed canon.Digest) (drawn []byte) {
	if m.length < leastLength || m.count < 2 {
		return nil
	}
	for _, i := range sample(seed, m.count, mostVectors) {
		for j := range m.length {
			drawn = binary.LittleEndian.AppendUint32(drawn, math.Float32bits(m.data[i*m.nextVector+j*m.nextIn]))
		}
	}
	return drawn
}

// directions is the median, over the drawn ones of the vectors of a matrix, of the likeness of the most similar one of
// another.
func directions(drawn []byte, count int, b matrix, base *matrix, seed canon.Digest) float64 {
	places := sample(seed, count, mostVectors)
	if len(drawn) == 0 || len(drawn) != 4*len(places)*b.length {
		return 0
	}
	values := make([]float64, 0, mostVectors)
	x, y, from := make([]float64, b.length), make([]float64, b.length), make([]float64, b.length)
	for n, i := range places {
		for j := range x {
			x[j] = float64(math.Float32frombits(binary.LittleEndian.Uint32(drawn[4*(n*b.length+j):])))
		}
		at, value := nearest(x, b, i, y)
		if base != nil {
			from = base.vector(i, from)
			value = math.Abs(cosine(learnt(x, from), learnt(b.vector(at, y), from)))
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// nearest is the vector of a matrix whose direction, or the opposite one, is nearest to that of x: first that at a
// place.
func nearest(x []float64, b matrix, place int, y []float64) (at int, value float64) {
	if place < b.count {
		at, value = place, math.Abs(cosine(x, b.vector(place, y)))
	}
	if value >= direct {
		return at, value
	}
	for i := range b.count {
		if v := math.Abs(cosine(x, b.vector(i, y))); v > value {
			at, value = i, v
		}
	}
	return at, value
}

// learnt is the part of a vector that is orthogonal to that of the base: what was learnt, but for the scale. Changes
// that are not above those of a base which is rounded to bfloat16 or float16 are left out: layers that were not tuned
// have the same ones in all models that are tuned from it. Where less than half of the vector is left, nothing was
// learnt.
func learnt(x, base []float64) []float64 {
	part := 0.0
	if n := dot(base, base); n > 0 {
		part = dot(x, base) / n
	}
	out := make([]float64, len(x))
	left := 0
	for i := range x {
		was := float64(part * base[i])
		if out[i] = x[i] - was; math.Abs(out[i]) <= max(math.Abs(was)/256, 1./(1<<24)) {
			out[i] = 0
		} else {
			left++
		}
	}
	if 2*left < len(x) {
		return make([]float64, len(x))
	}
	return out
}

// Alike reports whether two models have so nearly the same losses that one is a copy of the other: for half of the
// examples they differ by less than a thousandth of a nat and, as good models have almost none on an easy text, by less
// than a hundredth of the smaller one. The losses are in units of which a nat has 2^20.
func Alike(a, b []uint32) bool {
	const most = 1 << 20 / 1000
	excess := make([]int64, len(a)) // of a difference over what copies have
	for i := range a {
		small, large := min(a[i], b[i]), max(a[i], b[i])
		excess[i] = int64(large-small) - int64(min(most, small/100+1))
	}
	slices.SortFunc(excess, cmp.Compare)
	return len(excess) > 0 && excess[len(excess)/2] < 0
}
