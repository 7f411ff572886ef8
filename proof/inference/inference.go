// Package inference states what a network of dense layers says about an image, over integers, and verifies proofs of
// such statements without the weights of the network. The arithmetic is that of Run: integers alone, with one rounding
// between two layers, so that each machine and the circuit compute the same numbers.
//
// The package makes no proofs and no keys, and reads no models: proof/circuit, proof/ceremony and node/proven do.
package inference

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
)

// Limits of networks.
const (
	MaxLayers  = 8
	MaxInputs  = 3072 // 32 x 32 pixels of three channels
	MaxWidth   = 4096
	MaxClasses = 512
	MaxWeights = 1 << 18
	MaxOwner   = 128 // bytes of an account
	// MaxProof is the most bytes of a proof with its statement.
	MaxProof = 16 << 10
)

// Shape of a network: its numbers of inputs, of the values of each hidden layer, and of classes.
type Shape struct {
	Widths []uint32 `cbor:"1,keyasint"`
}

func (s Shape) String() string {
	parts := make([]string, len(s.Widths))
	for i, w := range s.Widths {
		parts[i] = fmt.Sprint(w)
	}
	return "a network of " + strings.Join(parts, " to ")
}

// Layers is the number of dense layers.
func (s Shape) Layers() int { return len(s.Widths) - 1 }

// Inputs is the number of inputs.
func (s Shape) Inputs() int { return int(s.Widths[0]) }

// Classes is the number of outputs.
func (s Shape) Classes() int { return int(s.Widths[len(s.Widths)-1]) }

// Weights is the number of weights, with those that are added.
func (s Shape) Weights() (n int) {
	for i, out := range s.Widths[1:] {
		n += (int(s.Widths[i]) + 1) * int(out)
	}
	return n
}

// Validate checks a shape.
func (s Shape) Validate() error {
	ok := len(s.Widths) >= 2 && len(s.Widths) <= MaxLayers+1
	for _, w := range s.Widths {
		ok = ok && w >= 2 && w <= MaxWidth
	}
	if !ok || s.Inputs() > MaxInputs || s.Classes() > MaxClasses || s.Weights() > MaxWeights {
		return fmt.Errorf("%w: %s; it has 1 to %d layers, 2 to %d inputs, 2 to %d classes, widths of 2 to %d and at most "+
			"%d weights", equation.ErrShape, s, MaxLayers, MaxInputs, MaxClasses, MaxWidth, MaxWeights)
	}
	return nil
}

// Statement is what a proof shows: numbers modulo the order of BN254 exist under a commitment, with which Run, modulo
// that order, makes Outputs of Pixels. Exponents are what the maker says: no proof shows them.
type Statement struct {
	Model canon.Digest `cbor:"1,keyasint"` // description of the files of the model, as its listing has it
	Shape Shape        `cbor:"2,keyasint"`
	// of each layer: its weights are integers divided by two to the power of this
	Exponents []int16 `cbor:"3,keyasint"`
	Pixels    []byte  `cbor:"4,keyasint"` // of the image: Shape.Inputs
	Outputs   []byte  `cbor:"5,keyasint"` // scores of the classes: int64, little endian
	// account for which the proof was made: no other shows it as its own. "": each party that has the proof does
	Owner string `cbor:"6,keyasint,omitempty"`
}

const (
	outputBytes = 8
	maxExponent = 200
	mostPlace   = 900 // a score is below 2^(63 + mostPlace)
)

// Validate checks a statement by itself.
func (s Statement) Validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", equation.ErrStatement, fmt.Sprintf(format, args...))
	}
	if err := s.Shape.Validate(); err != nil {
		return err
	}
	switch {
	case s.Model.IsZero():
		return reject("the digest of the model is missing")
	case len(s.Owner) > MaxOwner || !utf8.ValidString(s.Owner):
		return reject("an account of %d bytes, at most %d of UTF-8", len(s.Owner), MaxOwner)
	case len(s.Exponents) != s.Shape.Layers():
		return reject("%d exponents for %s", len(s.Exponents), s.Shape)
	case len(s.Pixels) != s.Shape.Inputs() || len(s.Outputs) != outputBytes*s.Shape.Classes():
		return reject("%d bytes of pixels and %d of outputs for %s", len(s.Pixels), len(s.Outputs), s.Shape)
	}
	for _, e := range s.Exponents {
		if e < -maxExponent || e > maxExponent {
			return reject("the exponent %d", e)
		}
	}
	if s.place() < -mostPlace {
		return reject("the exponents %v, with which scores are not finite", s.Exponents)
	}
	return nil
}

// Output is the integer of a class.
func (s Statement) Output(class int) int64 {
	return int64(binary.LittleEndian.Uint64(s.Outputs[outputBytes*class:]))
}

// place is the power of two by which the outputs are divided.
func (s Statement) place() (n int) {
	for i, e := range s.Exponents {
		if n += int(e); i < len(s.Exponents)-1 {
			n -= Fraction
		}
	}
	return n
}

// Scores are the scores of the classes, as the integers give them.
func (s Statement) Scores() []float64 {
	place := s.place()
	scores := make([]float64, s.Shape.Classes())
	for i := range scores {
		scores[i] = math.Ldexp(float64(s.Output(i))/white, -place)
	}
	return scores
}

// Best is the class with the highest score: the first of several.
func (s Statement) Best() (class int) {
	for i := range s.Shape.Classes() {
		if s.Output(i) > s.Output(class) {
			class = i
		}
	}
	return class
}

// Proof is a proof of a statement.
type Proof struct {
	Statement  Statement `cbor:"1,keyasint"`
	Commitment []byte    `cbor:"2,keyasint"` // to the weights: a point of G1, compressed
	Points     []byte    `cbor:"3,keyasint"` // as equation.Proof has them
}

// Magic begins the files of proofs.
const Magic = "starling inference 1\n"

// Encode returns the bytes of a proof with its statement.
func (p Proof) Encode() []byte { return append([]byte(Magic), canon.MustMarshal(p)...) }

// Digest names a proof with its statement.
func (p Proof) Digest() canon.Digest { return canon.Sum("starling/inference/1", p.Encode()) }

// Decode reads a proof, and checks the form of its statement. The proof may not hold.
func Decode(data []byte) (p Proof, err error) {
	if err := equation.Decode(data, Magic, MaxProof, &p); err != nil {
		return p, fmt.Errorf("%w: %w", equation.ErrForm, err)
	}
	return p, p.Statement.Validate()
}

// Public are the public inputs of the circuit, in its order: a number that follows from key, statement and commitment
// and binds the proof to them, then the inputs of the first layer, then the outputs.
func Public(key canon.Digest, s Statement, commitment []byte) ([]fr.Element, error) {
	seed := canon.Sum("starling/proof/inference/1", key[:], canon.MustMarshal(s), commitment)
	list, err := fr.Hash(seed[:], []byte("starling-inference"), 1)
	if err != nil {
		return nil, err
	}
	var x fr.Element
	for _, p := range s.Pixels {
		list = append(list, *x.SetInt64(input(p)))
	}
	for i := range s.Shape.Classes() {
		list = append(list, *x.SetInt64(s.Output(i)))
	}
	return list, nil
}
