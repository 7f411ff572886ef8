package inference

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/proof/equation"
)

// The integers of a network. A pixel p is the integer 2p - 255, divided by white. A hidden value is the sum of its
// layer, divided by 2^Fraction and rounded to the nearest, ties up, and zero if that is negative. Sums before that are
// within Bound of zero whatever the image, so that no hidden value has more bits than Fraction.
const (
	white = 255
	// Fraction is the number of bits by which a sum is made smaller between two layers, and Top that of a sum.
	Fraction, Top = 23, 46
	// Bound is the least magnitude that no sum before a hidden value has.
	Bound = 1<<Top - 1<<(Fraction-1)
	// lastBound is that of the last sums, of which no bits are taken.
	lastBound = 1 << 52

	mostHidden = 1<<Fraction - 1
	largest    = math.MaxInt32 // weight
)

func input(pixel byte) int64 { return 2*int64(pixel) - white }

// Layer are the integers of a dense layer: Weights [out, in], row after row, and Added [out], which has the scale of
// the sums.
type Layer struct {
	Weights  []int32
	Added    []int64
	Exponent int16
}

// Network are the integers of a network.
type Network struct {
	Shape  Shape
	Layers []Layer
}

// Floats are the weights of a dense layer as a model has them.
type Floats struct{ Weights, Added []float32 }

// Quantise rounds the weights of a network to integers of 32 bits, over the largest power of two for each layer with
// which all sums fit; ties go to even integers.
func Quantise(shape Shape, layers []Floats) (n Network, err error) {
	if err := shape.Validate(); err != nil {
		return n, err
	}
	n.Shape = shape
	if len(layers) != shape.Layers() {
		return n, fmt.Errorf("%w: %d layers for %s", equation.ErrShape, len(layers), shape)
	}
	place := 0 // the inputs of a layer are integers divided by white * 2^place
	for i, f := range layers {
		in, out := int(shape.Widths[i]), int(shape.Widths[i+1])
		if len(f.Weights) != in*out || len(f.Added) != out {
			return n, fmt.Errorf("%w: %d and %d weights in layer %d of %s", equation.ErrShape, len(f.Weights), len(f.Added),
				i+1, shape)
		}
		most := int64(mostHidden)
		if i == 0 {
			most = white
		}
		bound := int64(Bound)
		if i == shape.Layers()-1 {
			bound = lastBound
		}
		l, ok := quantise(f, in, place, most, bound)
		if !ok {
			return n, fmt.Errorf("%w: layer %d has weights that are not finite, or too large", equation.ErrShape, i+1)
		}
		n.Layers = append(n.Layers, l)
		place += int(l.Exponent) - Fraction
	}
	return n, nil
}

// quantise rounds one layer whose inputs are within most of zero.
func quantise(f Floats, in, place int, most, bound int64) (l Layer, ok bool) {
	top := 0.0
	for _, list := range [][]float32{f.Weights, f.Added} {
		for _, v := range list {
			if v != v || math.IsInf(float64(v), 0) {
				return l, false
			}
		}
	}
	for _, v := range f.Weights {
		top = max(top, math.Abs(float64(v)))
	}
	_, e := math.Frexp(top) // top < 2^e; of zero it is 0
	for exponent := 31 - e; exponent >= -maxExponent; exponent-- {
		if l, ok = rounded(f, in, exponent, place, most, bound); ok && exponent <= maxExponent {
			return l, true
		}
	}
	return l, false
}

func rounded(f Floats, in, exponent, place int, most, bound int64) (l Layer, ok bool) {
	l.Exponent = int16(exponent)
	for row, b := range f.Added {
		added := math.RoundToEven(math.Ldexp(float64(b)*white, exponent+place))
		if math.Abs(added) >= float64(bound) {
			return l, false
		}
		sum := int64(math.Abs(added))
		for _, v := range f.Weights[row*in : (row+1)*in] {
			w := math.RoundToEven(math.Ldexp(float64(v), exponent))
			if math.Abs(w) > largest {
				return l, false
			}
			l.Weights = append(l.Weights, int32(w))
			sum += int64(math.Abs(w)) * most
		}
		if sum >= bound {
			return l, false
		}
		l.Added = append(l.Added, int64(added))
	}
	return l, true
}

// Validate checks the numbers of weights.
func (n Network) Validate() error {
	if err := n.Shape.Validate(); err != nil {
		return err
	}
	ok := len(n.Layers) == n.Shape.Layers()
	for i := 0; ok && i < len(n.Layers); i++ {
		in, out := int(n.Shape.Widths[i]), int(n.Shape.Widths[i+1])
		ok = len(n.Layers[i].Weights) == in*out && len(n.Layers[i].Added) == out
	}
	if !ok {
		return fmt.Errorf("%w: the layers are not those of %s", equation.ErrShape, n.Shape)
	}
	return nil
}

// Run computes the outputs of an image, of Shape.Inputs pixels.
func (n Network) Run(pixels []byte) []int64 {
	x := make([]int64, len(pixels))
	for i, p := range pixels {
		x[i] = input(p)
	}
	for i, l := range n.Layers {
		y := make([]int64, len(l.Added))
		for row := range y {
			y[row] = l.Added[row]
			for j, w := range l.Weights[row*len(x) : (row+1)*len(x)] {
				y[row] += int64(w) * x[j]
			}
			if i < len(n.Layers)-1 {
				y[row] = max(0, (y[row]+1<<(Fraction-1))>>Fraction)
			}
		}
		x = y
	}
	return x
}

// Apply sets the shape, the exponents, the pixels and the outputs of a statement: those of the network on an image.
func (s *Statement) Apply(n Network, pixels []byte) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if len(pixels) != n.Shape.Inputs() {
		return fmt.Errorf("%w: %d pixels for %s", equation.ErrStatement, len(pixels), n.Shape)
	}
	s.Shape, s.Pixels, s.Exponents, s.Outputs = n.Shape, pixels, nil, nil
	for _, l := range n.Layers {
		s.Exponents = append(s.Exponents, l.Exponent)
	}
	for _, y := range n.Run(pixels) {
		s.Outputs = binary.LittleEndian.AppendUint64(s.Outputs, uint64(y))
	}
	return nil
}
