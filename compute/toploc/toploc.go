// Package toploc proves which activations a text was made with, for stacks whose bits differ from ours: TOPLOC (Ong et
// al. 2025). A proof has the largest activations of up to 32 tokens, in bfloat16, as a polynomial over their places. A
// party with the model computes the activations again in one pass over the text and compares them within thresholds.
//
// It computes no activations, and a proof binds no party: the caller decides about one that does not hold.
package toploc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	Tokens = 32                 // of one proof, at most
	Top    = 128                // activations that a proof has
	Bytes  = 2 + 2*Top          // of a proof: the modulus and the coefficients, big-endian
	prime  = 65497              // the field, above every finite bfloat16
	least  = 1 << 15            // modulus
	most   = Tokens * (1 << 20) // activations of a proof
)

// Thresholds of a proof that holds: as published for activations in bfloat16, and for activations in float32 that
// differ by the order of additions alone, so that few of them are rounded to another bfloat16.
const (
	MaxExponents = 38 // of Top
	MaxMean      = 10
	MaxMedian    = 8
	MaxOther     = 8 // of Top
)

var (
	// ErrActivations says that there is no proof of activations: there are fewer than Top, too many, or one is not finite.
	ErrActivations = errors.New("activations without a proof")
	// ErrProof is wrapped by every reason why bytes are not a proof.
	ErrProof = errors.New("not a proof of activations")
)

// place is one of the largest activations.
type place struct {
	index int
	bits  uint16 // of its value in bfloat16
}

// largest are the largest activations by amount in bfloat16, the first of equals first.
func largest(activations []float32) ([]place, error) {
	if len(activations) < Top || len(activations) > most {
		return nil, fmt.Errorf("toploc: %w: %d of them", ErrActivations, len(activations))
	}
	all := make([]place, len(activations))
	for i, x := range activations {
		u := math.Float32bits(x)
		u += 0x7fff + u>>16&1
		all[i] = place{i, uint16(u >> 16)}
		if all[i].bits&0x7f80 == 0x7f80 {
			return nil, fmt.Errorf("toploc: %w: activation %d is %v", ErrActivations, i, x)
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return int(b.bits&0x7fff) - int(a.bits&0x7fff) })
	return all[:Top], nil
}

// Prove returns the proof of the activations of up to Tokens tokens, one row after the other.
func Prove(activations []float32) ([]byte, error) {
	top, err := largest(activations)
	if err != nil {
		return nil, err
	}
	m := modulus(top)
	if m == 0 {
		return nil, fmt.Errorf("toploc: %w: no modulus tells their places apart", ErrActivations)
	}
	out := binary.BigEndian.AppendUint16(make([]byte, 0, Bytes), uint16(m))
	for _, c := range interpolate(top, m) {
		out = binary.BigEndian.AppendUint16(out, uint16(c))
	}
	return out, nil
}

// modulus is the largest by which the places differ; 0: there is none.
func modulus(top []place) int {
	seen := make([]int, prime+1)
	for m := prime; m > least; m-- {
		distinct := true
		for _, p := range top {
			if r := p.index % m; seen[r] == m {
				distinct = false
				break
			} else {
				seen[r] = m
			}
		}
		if distinct {
			return m
		}
	}
	return 0
}

// interpolate returns the coefficients of the polynomial through the values, the constant one first: by divided
// differences.
func interpolate(top []place, m int) []uint64 {
	n := len(top)
	x, d := make([]uint64, n), make([]uint64, n)
	for i, p := range top {
		x[i], d[i] = uint64(p.index%m), uint64(p.bits)
	}
	for k := 1; k < n; k++ {
		for i := n - 1; i >= k; i-- {
			d[i] = (d[i] + prime - d[i-1]) % prime * inverse((x[i]+prime-x[i-k])%prime) % prime
		}
	}
	out := make([]uint64, n)
	for k := n - 1; k >= 0; k-- { // out = out * (X - x[k]) + d[k]
		for i := n - 1; i > 0; i-- {
			out[i] = (out[i-1] + (prime-x[k])*out[i]) % prime
		}
		out[0] = ((prime-x[k])*out[0] + d[k]) % prime
	}
	return out
}

// inverse is 1/a in the field.
func inverse(a uint64) uint64 {
	out := uint64(1)
	for e := prime - 2; e > 0; e >>= 1 {
		if e&1 == 1 {
			out = out * a % prime
		}
		a = a * a % prime
	}
	return out
}

// Difference is how far the activations of a proof are from those that were computed again.
type Difference struct {
	Exponents int     `json:"exponents"` // activations whose sign or exponent differs, of Top
	Mean      float64 `json:"mean"`      // difference of the mantissas of the others, in units of their last bit
	Median    float64 `json:"median"`    // the same
	Other     int     `json:"other"`     // activations that differ at all, of Top
}

// Precision is that of the stack which made a proof.
type Precision string

// The precisions.
const (
	BFloat16 Precision = "bf16"
	Float32  Precision = "fp32"
)

// Holds reports whether a difference is within the thresholds of a precision.
func (d Difference) Holds(p Precision) bool {
	if p == Float32 {
		return d.Other <= MaxOther
	}
	return d.Exponents <= MaxExponents && d.Mean <= MaxMean && d.Median <= MaxMedian
}

// Compare compares a proof of a stranger with activations that were computed again: at the places that are the largest
// there. The error wraps ErrProof or ErrActivations.
func Compare(proof []byte, activations []float32) (Difference, error) {
	if len(proof) != Bytes {
		return Difference{}, fmt.Errorf("toploc: %w: %d bytes, and not %d", ErrProof, len(proof), Bytes)
	}
	m := int(binary.BigEndian.Uint16(proof))
	if m <= least || m > prime {
		return Difference{}, fmt.Errorf("toploc: %w: modulus %d", ErrProof, m)
	}
	coefficients := make([]uint64, Top)
	for i := range coefficients {
		if coefficients[i] = uint64(binary.BigEndian.Uint16(proof[2+2*i:])); coefficients[i] >= prime {
			return Difference{}, fmt.Errorf("toploc: %w: coefficient %d is %d", ErrProof, i, coefficients[i])
		}
	}
	top, err := largest(activations)
	if err != nil {
		return Difference{}, err
	}
	d, errs := Difference{Mean: math.MaxUint16, Median: math.MaxUint16}, []int(nil)
	sum := 0
	for _, p := range top {
		value := uint64(0)
		for i := Top - 1; i >= 0; i-- {
			value = (value*uint64(p.index%m) + coefficients[i]) % prime
		}
		if uint16(value) != p.bits {
			d.Other++
		}
		if uint16(value)>>7 != p.bits>>7 {
			d.Exponents++
			continue
		}
		e := int(value&0x7f) - int(p.bits&0x7f)
		errs = append(errs, max(e, -e))
		sum += max(e, -e)
	}
	if n := len(errs); n > 0 {
		slices.Sort(errs)
		d.Mean, d.Median = float64(sum)/float64(n), float64(errs[(n-1)/2]+errs[n/2])/2
	}
	return d, nil
}
