package ceremony

import (
	"bytes"
	"encoding/binary"
	"errors"

	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
)

var errForm = errors.New("it has another form than the contribution before it")

// form compares the bytes of a contribution with those of one before it, which has the same numbers of points. The
// decoder of gnark takes memory for as many points as the bytes say.
type form struct {
	before, data []byte
	at           int
	err          error
}

const (
	g1Bytes = bn254.SizeOfG1AffineCompressed
	g2Bytes = bn254.SizeOfG2AffineCompressed
)

// skip moves over n bytes, which are there in both.
func (f *form) skip(n int) bool {
	if f.err == nil && (n < 0 || f.at+n > len(f.before) || f.at+n > len(f.data)) {
		f.err = errForm
	}
	f.at += n
	return f.err == nil
}

// count reads a number of n bytes, which is the same in both.
func (f *form) count(n int) int {
	from := f.at
	if !f.skip(n) {
		return 0
	}
	if !bytes.Equal(f.before[from:f.at], f.data[from:f.at]) {
		f.err = errForm
		return 0
	}
	number := make([]byte, 8)
	copy(number[8-n:], f.data[from:f.at])
	return int(binary.BigEndian.Uint64(number))
}

// points moves over n points, which are compressed: others are longer.
func (f *form) points(n, size int) {
	for range n {
		from := f.at
		if !f.skip(size) {
			return
		}
		if f.data[from]&0xc0 == 0 {
			f.err = errForm
			return
		}
	}
}

// proofs moves over proofs that contributors know what they contributed.
func (f *form) proofs(n int) {
	for range n {
		f.points(1, g1Bytes)
		f.points(1, g2Bytes)
	}
}

// sameForm checks that a contribution to a phase has the form of the one before it.
func sameForm(phase int, before, data []byte) error {
	f := &form{before: before, data: data}
	if phase == 0 {
		f.proofs(3)
		n := f.count(8)
		f.points(1, g2Bytes)
		f.points(2*n-2, g1Bytes)
		f.points(n-1, g2Bytes)
		f.points(2*n, g1Bytes)
	} else {
		commitments := f.count(2)
		f.points(1, g1Bytes)
		for range 2 {
			f.points(f.count(4), g1Bytes)
		}
		f.points(1, g2Bytes)
		for range commitments {
			f.points(f.count(4), g1Bytes)
		}
		f.points(commitments, g2Bytes)
		f.proofs(1 + commitments)
	}
	if f.err == nil && (f.at >= len(data) || int(data[f.at]) != len(data)-f.at-1) { // the digest of the one before it
		f.err = errForm
	}
	return f.err
}

// maxChallenge bounds the last part of a contribution: the digest of the one before it, which the first state of a
// phase does not have.
const maxChallenge = 32
