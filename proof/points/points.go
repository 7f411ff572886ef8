// Package points reads the points of BN254 that keys and proofs of strangers hold, and writes those of keys. It knows
// no other fields of them, and computes nothing.
package points

import (
	"fmt"
	"slices"

	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
)

// Bytes of a point that is not compressed.
const (
	G1Bytes = bn254.SizeOfG1AffineUncompressed
	G2Bytes = bn254.SizeOfG2AffineUncompressed
)

// AppendG1 appends points that are not compressed.
func AppendG1(to []byte, list ...bn254.G1Affine) []byte {
	for _, p := range list {
		b := p.RawBytes()
		to = append(to, b[:]...)
	}
	return to
}

// AppendG2 appends points that are not compressed.
func AppendG2(to []byte, list ...bn254.G2Affine) []byte {
	for _, p := range list {
		b := p.RawBytes()
		to = append(to, b[:]...)
	}
	return to
}

// Reader reads points one after another, which are on the curve, in the subgroup, and not zero. After the first that is
// none it reads nothing more.
type Reader struct {
	Data []byte // what is left
	Err  error
}

// take cuts the next bytes off, of a point that is compressed or not.
func (r *Reader) take(n int, compressed bool) []byte {
	if r.Err != nil || len(r.Data) < n {
		if r.Err == nil {
			r.Err = fmt.Errorf("%d bytes are left for a point of %d", len(r.Data), n)
		}
		return nil
	}
	b := r.Data[:n]
	r.Data = r.Data[n:]
	zero := !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
	if (b[0]&0x80 != 0) != compressed || b[0]&0xc0 == 0x40 || zero {
		r.Err = fmt.Errorf("a point of %d bytes is zero, or in another form", n)
		return nil
	}
	return b
}

// G1 reads a point that is not compressed.
func (r *Reader) G1(p *bn254.G1Affine) { r.set(p.SetBytes, r.take(G1Bytes, false)) }

// G2 reads a point that is not compressed.
func (r *Reader) G2(p *bn254.G2Affine) { r.set(p.SetBytes, r.take(G2Bytes, false)) }

// ShortG1 reads a compressed point.
func (r *Reader) ShortG1(p *bn254.G1Affine) {
	r.set(p.SetBytes, r.take(bn254.SizeOfG1AffineCompressed, true))
}

// ShortG2 reads a compressed point.
func (r *Reader) ShortG2(p *bn254.G2Affine) {
	r.set(p.SetBytes, r.take(bn254.SizeOfG2AffineCompressed, true))
}

// End reports whether all bytes were points.
func (r *Reader) End() error {
	if r.Err == nil && len(r.Data) > 0 {
		r.Err = fmt.Errorf("%d bytes too many", len(r.Data))
	}
	return r.Err
}

func (r *Reader) set(setBytes func([]byte) (int, error), b []byte) {
	if r.Err != nil {
		return
	}
	if n, err := setBytes(b); err != nil || n != len(b) {
		r.Err = fmt.Errorf("a point of %d bytes: %w", len(b), err)
	}
}
