// Package proof states what a low-rank adapter adds to a layer of a base model, and verifies proofs of such statements
// without the weights of the adapter. A proof is Groth16 on BN254 (Groth 2016) over weights under a commitment of
// Pedersen (Campanelli et al. 2022, eprint 2022/1072). The arithmetic is that of integers: Quantise makes them.
//
// The package makes no proofs and no keys: proof/circuit and proof/ceremony do. docs/proofs.md says what a proof shows,
// and what not.
package proof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
)

// Errors of proofs.
var (
	ErrShape     = equation.ErrShape
	ErrStatement = equation.ErrStatement
	ErrKey       = equation.ErrKey
	ErrProof     = equation.ErrForm
	ErrInvalid   = equation.ErrInvalid
	ErrNumber    = errors.New("proof: not a finite number")
)

// Limits of statements.
const (
	MaxRank   = 256
	MaxWidth  = 16_384
	MaxTokens = 64
	MaxModule = 200     // bytes of the name of a layer
	MaxOwner  = 128     // bytes of an account
	MaxProof  = 4 << 20 // bytes of a proof with its statement

	maxNumbers = MaxProof - 4096 // bytes of inputs and outputs
	// maxTerms bounds Rank*In: a sum of that number of products of three numbers below 2^15 fits in an int64.
	maxTerms = 1 << 18
)

// Shape of an adapter: the product of B [Out, Rank] and A [Rank, In].
type Shape struct {
	Rank uint32 `cbor:"1,keyasint"`
	In   uint32 `cbor:"2,keyasint"`
	Out  uint32 `cbor:"3,keyasint"`
}

func (s Shape) String() string { return fmt.Sprintf("rank %d, %d to %d", s.Rank, s.In, s.Out) }

// Weights is the number of weights of an adapter.
func (s Shape) Weights() int { return int(s.Rank) * (int(s.In) + int(s.Out)) }

// Validate checks a shape.
func (s Shape) Validate() error {
	if s.Rank < 1 || s.Rank > MaxRank || s.In < 2 || s.In > MaxWidth || s.Out < 2 || s.Out > MaxWidth ||
		s.Rank*s.In > maxTerms || s.Rank*s.Out > maxTerms {
		return fmt.Errorf("%w: %s; the rank is 1 to %d, widths are 2 to %d, and the rank times a width is at most %d",
			ErrShape, s, MaxRank, MaxWidth, maxTerms)
	}
	return nil
}

// Statement is what a proof shows: matrices A and B exist under a commitment, of which
//
//	Outputs[t][i] = sum over k of B[i][k] * (sum over j of A[k][j] * Inputs[t][j])
//
// for every token t and row i, over the integers modulo the order of BN254. The rest of it says which files these
// numbers are of, and a checker that has the files compares them: a proof binds to it, and does not show it.
type Statement struct {
	Base    canon.Digest `cbor:"1,keyasint"` // description of the files of the base model, as its listing has it
	Adapter canon.Digest `cbor:"2,keyasint"` // description of the files of the adapter
	Module  string       `cbor:"3,keyasint"` // layer of the base model
	Shape   Shape        `cbor:"4,keyasint"`
	// numbers are integers divided by two to the power of these: those of A, of B and of the inputs
	Exponents [3]int16 `cbor:"5,keyasint"`
	Factor    uint64   `cbor:"6,keyasint"` // bits of the float64 by which the model multiplies the outputs: alpha / rank
	// text of which the inputs of the layer are, one number for each token: the base model alone makes them
	Tokens  []uint32 `cbor:"7,keyasint"`
	Inputs  []byte   `cbor:"8,keyasint"` // int16 [len(Tokens), Shape.In], little endian
	Outputs []byte   `cbor:"9,keyasint"` // int64 [len(Tokens), Shape.Out], little endian
	// account for which the proof was made: no other shows it as its own. "": each party that has the proof does
	Owner string `cbor:"10,keyasint,omitempty"`
}

const (
	inputBytes  = 2
	outputBytes = 8
	// largest is the largest integer of A, B and the inputs; the smallest is its negative.
	largest = math.MaxInt16
	// maxExponent bounds the exponents that Quantise chooses for float32.
	maxExponent = 200
)

// Validate checks a statement by itself.
func (s Statement) Validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrStatement, fmt.Sprintf(format, args...))
	}
	if err := s.Shape.Validate(); err != nil {
		return err
	}
	n, factor := len(s.Tokens), math.Float64frombits(s.Factor)
	switch {
	case s.Base.IsZero() || s.Adapter.IsZero():
		return reject("the digest of the base model or of the adapter is missing")
	case s.Module == "" || len(s.Module) > MaxModule || !utf8.ValidString(s.Module):
		return reject("a layer with a name of %d bytes, wanted 1 to %d of UTF-8", len(s.Module), MaxModule)
	case len(s.Owner) > MaxOwner || !utf8.ValidString(s.Owner):
		return reject("an account of %d bytes, at most %d of UTF-8", len(s.Owner), MaxOwner)
	case n < 1 || n > MaxTokens:
		return reject("%d tokens, wanted 1 to %d", n, MaxTokens)
	case !(factor > 0 && factor <= 1e9):
		return reject("the factor %g, wanted more than 0 and at most 1e9", factor)
	case len(s.Inputs) != n*int(s.Shape.In)*inputBytes || len(s.Outputs) != n*int(s.Shape.Out)*outputBytes:
		return reject("%d bytes of inputs and %d of outputs for %d tokens of %s", len(s.Inputs), len(s.Outputs), n, s.Shape)
	case len(s.Inputs)+len(s.Outputs) > maxNumbers:
		return reject("%d bytes of inputs and outputs, at most %d: take fewer tokens", len(s.Inputs)+len(s.Outputs),
			maxNumbers)
	}
	for _, e := range s.Exponents {
		if e < -maxExponent || e > maxExponent {
			return reject("the exponent %d", e)
		}
	}
	for i := range len(s.Inputs) / inputBytes {
		if s.input(i) < -largest {
			return reject("the input %d", s.input(i))
		}
	}
	return nil
}

func (s Statement) input(i int) int16 {
	return int16(binary.LittleEndian.Uint16(s.Inputs[i*inputBytes:]))
}

func (s Statement) output(i int) int64 {
	return int64(binary.LittleEndian.Uint64(s.Outputs[i*outputBytes:]))
}

// scale is the value of one in the outputs.
func (s Statement) scale() float64 {
	return math.Ldexp(math.Float64frombits(s.Factor),
		-int(s.Exponents[0])-int(s.Exponents[1])-int(s.Exponents[2]))
}

// Added is what the adapter adds to the output i of the layer at a token, as the integers of the statement give it.
func (s Statement) Added(token, i int) float64 {
	return float64(s.output(token*int(s.Shape.Out)+i)) * s.scale()
}

// Largest is the largest magnitude of the outputs of the adapter.
func (s Statement) Largest() (most float64) {
	for token := range s.Tokens {
		for i := range int(s.Shape.Out) {
			most = max(most, math.Abs(s.Added(token, i)))
		}
	}
	return most
}

// Rounding bounds the difference between Added and the same sum over the numbers before they were quantised, computed
// without rounding: each of Rank*In products of three numbers is off by at most (M+1/2)^3 - M^3 of the units of the
// outputs, where M is the largest integer.
func (s Statement) Rounding() float64 {
	const m = largest
	return float64(s.Shape.Rank) * float64(s.Shape.In) * ((m+0.5)*(m+0.5)*(m+0.5) - m*m*m) * s.scale()
}

// Fixed is numbers as integers over a power of two: the number i is Values[i] / 2^Exponent.
type Fixed struct {
	Values   []int16
	Exponent int16
}

// Quantise rounds numbers to the nearest integers over the largest power of two with which all are within 2^15 - 1 of
// zero; ties go to even integers. Each is off by at most half a unit.
func Quantise(x []float32) (Fixed, error) {
	most := 0.0
	for _, v := range x {
		if v != v || math.IsInf(float64(v), 0) {
			return Fixed{}, fmt.Errorf("%w: %v", ErrNumber, v)
		}
		most = max(most, math.Abs(float64(v)))
	}
	f := Fixed{Values: make([]int16, len(x))}
	if most == 0 {
		return f, nil
	}
	_, e := math.Frexp(most) // most < 2^e
	e = 15 - e
	if math.RoundToEven(math.Ldexp(most, e)) > largest {
		e--
	}
	for i, v := range x {
		f.Values[i] = int16(math.RoundToEven(math.Ldexp(float64(v), e)))
	}
	f.Exponent = int16(e)
	return f, nil
}

// Weights are the integers of an adapter: A [Rank, In] and B [Out, Rank], row after row.
type Weights struct {
	Shape Shape
	A, B  Fixed
}

// Validate checks the numbers of weights.
func (w Weights) Validate() error {
	if err := w.Shape.Validate(); err != nil {
		return err
	}
	if a, b := w.Shape.Rank*w.Shape.In, w.Shape.Rank*w.Shape.Out; len(w.A.Values) != int(a) || len(w.B.Values) != int(b) {
		return fmt.Errorf("%w: %d and %d weights for %s", ErrShape, len(w.A.Values), len(w.B.Values), w.Shape)
	}
	return nil
}

// Apply sets the inputs and the outputs of a statement: those of the weights on x [len(s.Tokens), In].
func (s *Statement) Apply(w Weights, x Fixed) error {
	rank, in, out := int(w.Shape.Rank), int(w.Shape.In), int(w.Shape.Out)
	if err := w.Validate(); err != nil {
		return err
	}
	if len(x.Values) != len(s.Tokens)*in {
		return fmt.Errorf("%w: %d inputs for %d tokens of %s", ErrStatement, len(x.Values), len(s.Tokens), w.Shape)
	}
	s.Shape, s.Exponents = w.Shape, [3]int16{w.A.Exponent, w.B.Exponent, x.Exponent}
	s.Inputs, s.Outputs = nil, nil
	for _, v := range x.Values {
		s.Inputs = binary.LittleEndian.AppendUint16(s.Inputs, uint16(v))
	}
	inner := make([]int64, rank)
	for t := range s.Tokens {
		row := x.Values[t*in : (t+1)*in]
		for k := range inner {
			inner[k] = 0
			for j, a := range w.A.Values[k*in : (k+1)*in] {
				inner[k] += int64(a) * int64(row[j])
			}
		}
		for i := range out {
			sum := int64(0)
			for k, b := range w.B.Values[i*rank : (i+1)*rank] {
				sum += int64(b) * inner[k]
			}
			s.Outputs = binary.LittleEndian.AppendUint64(s.Outputs, uint64(sum))
		}
	}
	return nil
}

// Proof is a proof of a statement.
type Proof struct {
	Statement  Statement `cbor:"1,keyasint"`
	Commitment []byte    `cbor:"2,keyasint"` // to the weights: a point of G1, compressed
	Points     []byte    `cbor:"3,keyasint"` // A, B and C of Groth16, and the proof that the weights are known, compressed
}

// Magic begins the files of proofs; its number is that of the version.
const Magic = "starling proof 1\n"

// Encode returns the bytes of a proof with its statement.
func (p Proof) Encode() []byte { return append([]byte(Magic), canon.MustMarshal(p)...) }

// Digest names a proof with its statement.
func (p Proof) Digest() canon.Digest { return canon.Sum("starling/proof/1", p.Encode()) }

// Decode reads a proof, and checks the form of its statement. The proof may not hold.
func Decode(data []byte) (p Proof, err error) {
	if err := equation.Decode(data, Magic, MaxProof, &p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return p, p.Statement.Validate()
}
