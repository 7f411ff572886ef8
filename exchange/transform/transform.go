package codec

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

// Transforms of an update before it is compressed, by name. Error feedback and aggregation take place in what it is
// transformed to.
const (
	Plain  = ""    // none: the elements as they are
	Waves  = "dct" // the frequencies of blocks of a matrix, of DeMo (Peng et al. 2024)
	blocks = 64    // the longest side of one
)

// CheckTransform reports why there is no transform of this name.
func CheckTransform(name string) error {
	if name != Plain && name != Waves {
		return fmt.Errorf("codec: transform %q is not known", name)
	}
	return nil
}

// Transform returns what becomes of a tensor by a known transform: a tensor of its shape and norm. The frequencies of a
// matrix are those of block after block, row-major, of a DCT-II along both axes as DCT has them. A row of blocks has at
// most PartElements elements, so that blocks of wide matrices are lower.
func Transform(name string, x *tensor.Tensor) *tensor.Tensor {
	if name == Plain {
		return x
	}
	return tensor.FromF32(TransformPiece(name, x.Shape, x.F32()), x.Shape.Dims...)
}

// Inverse returns the tensor that Transform makes this of, but for rounding.
func Inverse(name string, y *tensor.Tensor) *tensor.Tensor {
	if name == Plain {
		return y
	}
	x := tensor.New(y.Shape)
	waves(y.Shape).inverse(x.F32(), y.F32())
	return x
}

// mostWave is the largest frequency that is taken: what is summed of those of all units, and transformed back, is
// finite.
const mostWave = math.MaxFloat32 / (1 << 20)

// CheckTransformed reports, as an error that wraps ErrPayload, why a tensor that was received is not to be transformed
// back.
func CheckTransformed(name string, y *tensor.Tensor) error {
	for i, v := range y.F32() {
		if name != Plain && !(math.Abs(float64(v)) <= mostWave) {
			return fmt.Errorf("%w: frequency %d is %v, and at most %v is taken", ErrPayload, i, v, mostWave)
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
	each := g.r * g.cols
	if g.r == 1 {
		each = g.c
	}
	return lo / each * each, (hi + each - 1) / each * each
}

// TransformPiece is Transform of consecutive elements of a tensor that Reach returns.
func TransformPiece(name string, s tensor.Shape, x []float32) []float32 {
	if name == Plain {
		return x
	}
	g := waves(s)
	if g.r == 1 { // blocks that follow each other
		g.cols = len(x)
	}
	return g.transform(x)
}

// waves are the blocks of a tensor. Those of one row follow each other wherever rows end.
func waves(s tensor.Shape) grid {
	g := gridOf(s, blocks, PartElements)
	if g.r == 1 {
		g.rows, g.cols = 1, s.Elements()
	}
	return g
}
