package codec

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/dct"
)

// DCT keeps the K largest frequencies of every block of a matrix (DeMo, Peng et al. 2024): each block is
// transformed by the orthonormal discrete cosine transform (DCT-II) along both axes and sent as TopK sends a chunk. The
// sides of a block are the largest divisors, up to Side, of the dimensions; a vector is a matrix of one row, and all
// but the last dimension of a larger tensor count as one.
type DCT struct {
	Side int // 1 to dct.MaxSide
	K    int
	Bits int // of a value, as in TopK
}

// Check implements Codec.
func (c DCT) Check() error {
	if c.Side < 1 || c.Side > dct.MaxSide {
		return fmt.Errorf("codec: no DCT has blocks of side %d", c.Side)
	}
	return TopK{Chunk: c.Side * c.Side, K: c.K, Bits: c.Bits}.Check()
}

func (c DCT) grid(s tensor.Shape) dct.Grid { return dct.GridOf(s, c.Side, s.Elements()) }

func (c DCT) sparse(g dct.Grid) TopK { return TopK{Chunk: g.R * g.C, K: c.K, Bits: c.Bits} }

func (c DCT) size(s tensor.Shape) int { return c.sparse(c.grid(s)).size(s) }

func (c DCT) encode(b []byte, x *tensor.Tensor) error {
	g := c.grid(x.Shape)
	y := g.Transform(x.F32())
	c.sparse(g).pack(b, y)
	return finite(y)
}

func (c DCT) decode(x *tensor.Tensor, b []byte) error {
	g := c.grid(x.Shape)
	y := make([]float32, g.Rows*g.Cols)
	if err := c.sparse(g).unpack(y, b); err != nil {
		return err
	}
	if err := finite(y); err != nil {
		return err
	}
	g.Inverse(x.F32(), y)
	return nil
}

// Frequencies decodes a payload of Compress without going back: the frequencies of block after block, row-major, zero
// where none was sent. Updates are combined in this form where only what was sent is to count. A tensor that travelled
// as it is gives its frequencies all the same.
func (c DCT) Frequencies(payload []byte, s tensor.Shape) ([]float32, error) {
	if effective(c, s) != Codec(c) {
		x, err := Restore(c, payload, s)
		if err != nil {
			return nil, err
		}
		y := c.grid(s).Transform(x.F32())
		return y, finite(y)
	}
	if len(payload) != c.size(s) {
		return nil, fmt.Errorf("%w: %d bytes for %s, want %d", ErrPayload, len(payload), s, c.size(s))
	}
	y := make([]float32, s.Elements())
	if err := c.sparse(c.grid(s)).unpack(y, payload); err != nil {
		return nil, err
	}
	return y, finite(y)
}

// Synthesize returns the tensor that has the given frequencies.
func (c DCT) Synthesize(frequencies []float32, s tensor.Shape) *tensor.Tensor {
	x := tensor.New(s)
	c.grid(s).Inverse(x.F32(), frequencies)
	return x
}
