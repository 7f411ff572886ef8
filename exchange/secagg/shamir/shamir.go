// Package shamir divides a secret of 32 bytes into shares of 32 bytes, any threshold of which give it back and fewer of
// which say nothing about it (Shamir 1979). It does not detect wrong shares; package secagg does, by their digests.
package shamir

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/starling-network/starling/exchange/prg"
)

// Size is the length of a secret and of a share in bytes.
const Size = 32

// MaxShares is the largest number of shares of a secret.
const MaxShares = 1 << 10

// prime is 2^256 - 189, the largest prime of 256 bits.
var prime = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(189))

// ErrShares wraps every reason why a secret cannot be divided or put together.
var ErrShares = errors.New("secret sharing")

// Valid reports whether 32 bytes are an element of the field: all but 189 of 2^256 are.
func Valid(secret [Size]byte) bool { return new(big.Int).SetBytes(secret[:]).Cmp(prime) < 0 }

// Split divides a secret into n shares; key draws the coefficients of the polynomial. Share i is that at i+1.
func Split(secret [Size]byte, threshold, n int, key prg.Key) ([][Size]byte, error) {
	if threshold < 1 || threshold > n || n > MaxShares || !Valid(secret) {
		return nil, fmt.Errorf("%w: %d of %d shares", ErrShares, threshold, n)
	}
	s := prg.New(key)
	coefficients := []*big.Int{new(big.Int).SetBytes(secret[:])}
	for len(coefficients) < threshold {
		words := new(big.Int)
		for range 4 {
			words.Lsh(words, 64).Or(words, new(big.Int).SetUint64(s.Uint64()))
		}
		if words.Cmp(prime) < 0 {
			coefficients = append(coefficients, words)
		}
	}
	shares := make([][Size]byte, n)
	for i := range shares {
		x, y := big.NewInt(int64(i+1)), new(big.Int)
		for k := threshold - 1; k >= 0; k-- {
			y.Mod(y.Add(y.Mul(y, x), coefficients[k]), prime)
		}
		y.FillBytes(shares[i][:])
	}
	return shares, nil
}

// Weights are the coefficients with which the shares of the given indices, counted from 0, add up to the secret
// (Lagrange at zero). The indices differ.
func Weights(indices []int) ([]*big.Int, error) {
	out := make([]*big.Int, len(indices))
	for i, a := range indices {
		over, under := big.NewInt(1), big.NewInt(1)
		for j, b := range indices {
			if i == j {
				continue
			}
			if a == b {
				return nil, fmt.Errorf("%w: two shares of index %d", ErrShares, a)
			}
			over.Mod(over.Mul(over, big.NewInt(int64(b+1))), prime)
			under.Mod(under.Mul(under, big.NewInt(int64(b-a))), prime)
		}
		out[i] = over.Mod(over.Mul(over, under.ModInverse(under, prime)), prime)
	}
	return out, nil
}

// Combine is the secret of a threshold of shares, with the Weights of their indices.
func Combine(shares [][Size]byte, weights []*big.Int) (secret [Size]byte) {
	sum := new(big.Int)
	for i, s := range shares {
		y := new(big.Int).SetBytes(s[:])
		sum.Mod(sum.Add(sum, y.Mul(y, weights[i])), prime)
	}
	sum.FillBytes(secret[:])
	return secret
}
