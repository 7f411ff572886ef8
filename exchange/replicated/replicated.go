// Package replicated computes on integers modulo 2^64 that three parties hold shares of (Araki et al. 2016; Mohassel
// and Rindal 2018): a value is the sum of three shares, and party i holds shares i and i+1, counted modulo 3. One party
// alone sees numbers that cannot be told from random ones, as long as all three follow the protocol; two together know
// everything. Numbers with a fraction have FractionBits bits of it. The package holds no connection: a Ring passes
// messages. It knows no networks of layers either: node/triple does.
package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/exchange/prg"
)

// Parties is the number of parties.
const Parties = 3

// FractionBits are the bits of a number after the binary point.
const FractionBits = 13

// MaxWords bounds the numbers of one message.
const MaxWords = 1 << 20

// ErrMessage wraps every reason why the bytes of another party are refused.
var ErrMessage = errors.New("computing on shares")

// Vector are the shares i and i+1 of a list of numbers at party i. Shares of words of bits are added by exclusive or.
type Vector [2][]uint64

func zeros(n int) Vector { return Vector{make([]uint64, n), make([]uint64, n)} }

// Fixed is a number with a fraction, rounded to FractionBits bits of it; with double of them where twice is set.
func Fixed(x float64, twice bool) uint64 {
	bits := FractionBits
	if twice {
		bits *= 2
	}
	return uint64(int64(math.RoundToEven(math.Ldexp(x, bits))))
}

// Float is the number that Fixed rounded.
func Float(x uint64) float64 { return math.Ldexp(float64(int64(x)), -FractionBits) }

// Split divides numbers into shares for the parties. The key is random, secret and used once.
func Split(values []uint64, key prg.Key) (of [Parties]Vector) {
	s := prg.New(key)
	var shares [Parties][]uint64
	for i := range shares {
		shares[i] = make([]uint64, len(values))
	}
	for k, v := range values {
		shares[0][k], shares[1][k] = s.Uint64(), s.Uint64()
		shares[2][k] = v - shares[0][k] - shares[1][k]
	}
	for i := range of {
		of[i] = Vector{shares[i], shares[(i+1)%Parties]}
	}
	return of
}

// Join are the numbers that shares of all parties are of. Each share is given by two parties, which have to agree.
func Join(of [Parties]Vector) ([]uint64, error) {
	n := len(of[0][0])
	for i, v := range of {
		if len(v[0]) != n || len(v[1]) != n {
			return nil, fmt.Errorf("%w: party %d has %d and %d shares of %d numbers", ErrMessage, i, len(v[0]), len(v[1]), n)
		}
	}
	out := make([]uint64, n)
	for k := range out {
		for i, v := range of {
			if v[1][k] != of[(i+1)%Parties][0][k] {
				return nil, fmt.Errorf("%w: parties %d and %d differ in a share that both hold", ErrMessage, i, (i+1)%Parties)
			}
			out[k] += v[0][k]
		}
	}
	return out, nil
}

// Encode are the bytes of a list of numbers, 8 for each, the lowest first.
func Encode(values []uint64) []byte {
	b := make([]byte, 0, 8*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Decode reads the bytes of n numbers.
func Decode(b []byte, n int) ([]uint64, error) {
	if n > MaxWords || len(b) != 8*n {
		return nil, fmt.Errorf("%w: %d bytes for %d numbers, of at most %d", ErrMessage, len(b), n, MaxWords)
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out, nil
}
