// Package transform is what is done to an update before it is compressed, and undone after updates are combined: error
// feedback and aggregation take place in what it is transformed to. The bits are the same on every machine.
package transform

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/dct"
)

// The names of transforms.
const (
	Plain           = ""    // none: the elements as they are
	CosineTransform = "dct" // the frequencies of blocks of a matrix, of DeMo (Peng et al. 2024)
	blocks          = 64    // the longest side of one
)

// Check reports why there is no transform of this name.
func Check(name string) error {
	if name != Plain && name != CosineTransform {
		return fmt.Errorf("transform: %q is not known", name)
	}
	return nil
}

// Apply returns a tensor under a known transform, of the same shape and norm. The frequencies of a matrix are those of
// block after block, row-major, of a DCT-II along both axes as DCT has them. A row of blocks has at most
// codec.PartElements elements, so that blocks of wide matrices are lower.
func Apply(name string, x *tensor.Tensor) *tensor.Tensor {
	if name == Plain {
		return x
	}
	return tensor.FromF32(Piece(name, x.Shape, x.F32()), x.Shape.Dims...)
}

// Inverse returns the tensor that Apply makes this of, but for rounding.
func Inverse(name string, y *tensor.Tensor) *tensor.Tensor {
	if name == Plain {
		return y
	}
	x := tensor.New(y.Shape)
	waves(y.Shape).Inverse(x.F32(), y.F32())
	return x
}

// mostWave is the largest frequency that is taken: what is summed of those of all units, and transformed back, is
// finite.
const mostWave = math.MaxFloat32 / (1 << 20)

// CheckResult reports, as an error that wraps codec.ErrPayload, why a tensor that was received is not to be transformed
// back.
func CheckResult(name string, y *tensor.Tensor) error {
	for i, v := range y.F32() {
		if name != Plain && !(math.Abs(float64(v)) <= mostWave) {
			return fmt.Errorf("%w: frequency %d is %v, and at most %v is taken", codec.ErrPayload, i, v, mostWave)
		}
	}
	return nil
}

// Reach returns which elements of a tensor those from lo to before hi of its transform are made of.
func Reach(name string, s tensor.Shape, lo, hi int) (from, to int) {
	if name == Plain || lo == hi {
		return lo, hi
	}
	g := waves(s)
	each := g.R * g.Cols
	if g.R == 1 {
		each = g.C
	}
	return lo / each * each, (hi + each - 1) / each * each
}

// Piece is Apply of consecutive elements of a tensor that Reach returns.
func Piece(name string, s tensor.Shape, x []float32) []float32 {
	if name == Plain {
		return x
	}
	g := waves(s)
	if g.R == 1 { // blocks that follow each other
		g.Cols = len(x)
	}
	return g.Transform(x)
}

// waves are the blocks of a tensor. Those of one row follow each other wherever rows end.
func waves(s tensor.Shape) dct.Grid {
	g := dct.GridOf(s, blocks, codec.PartElements)
	if g.R == 1 {
		g.Rows, g.Cols = 1, s.Elements()
	}
	return g
}
