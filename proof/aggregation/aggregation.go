// Package aggregation states the sum of updates that their owners committed to, over integers, and verifies proofs of
// it without the updates. Updates on the grid of exchange/fixedpoint have their weight as the last element, so the sum
// gives the weighted mean.
//
// The package makes no proofs and no keys, and reads no updates: proof/circuit, proof/ceremony and node/proven do.
package aggregation

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/points"
)

// Limits of sums.
const (
	MaxUpdates  = 32
	MaxElements = 1 << 18 // of all updates together
	MaxPart     = 200     // bytes of the name of a part
	MaxOwner    = 128     // bytes of an account
	// MaxProof is the most bytes of a proof with its statement.
	MaxProof = MaxElements/2*sumBytes + 8192

	sumBytes = 8
)

// Shape of a sum: how many updates are added, and how many elements each has.
type Shape struct {
	Updates uint32 `cbor:"1,keyasint"`
	Length  uint32 `cbor:"2,keyasint"`
}

func (s Shape) String() string {
	return fmt.Sprintf("sums of %d updates of %d elements", s.Updates, s.Length)
}

// Validate checks a shape.
func (s Shape) Validate() error {
	if s.Updates < 2 || s.Updates > MaxUpdates || s.Length < 2 || s.Length > MaxElements/s.Updates {
		return fmt.Errorf("%w: %s; there are 2 to %d updates, 2 elements or more, and at most %d in all",
			equation.ErrShape, s, MaxUpdates, MaxElements)
	}
	return nil
}

// Statement is what a proof shows: numbers exist under one commitment for each update, of which Sums are the sums, over
// the integers modulo the order of BN254.
type Statement struct {
	Model canon.Digest `cbor:"1,keyasint"` // description of the files of the model that the sum changed
	Part  string       `cbor:"2,keyasint"` // of the model, or of a round: what the elements are
	Shape Shape        `cbor:"3,keyasint"`
	Sums  []byte       `cbor:"4,keyasint"` // int64 [Shape.Length], little endian
	// account for which the proof was made: no other shows it as its own. "": each party that has the proof does
	Owner string `cbor:"5,keyasint,omitempty"`
}

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
	case s.Part == "" || len(s.Part) > MaxPart || !utf8.ValidString(s.Part):
		return reject("a part with a name of %d bytes, wanted 1 to %d of UTF-8", len(s.Part), MaxPart)
	case len(s.Owner) > MaxOwner || !utf8.ValidString(s.Owner):
		return reject("an account of %d bytes, at most %d of UTF-8", len(s.Owner), MaxOwner)
	case len(s.Sums) != sumBytes*int(s.Shape.Length):
		return reject("%d bytes of sums for %s", len(s.Sums), s.Shape)
	}
	return nil
}

// Sum is the sum of an element.
func (s Statement) Sum(i int) int64 { return int64(binary.LittleEndian.Uint64(s.Sums[sumBytes*i:])) }

// Apply sets the shape and the sums of a statement: those of updates of one length.
func (s *Statement) Apply(updates [][]int32) error {
	if len(updates) == 0 {
		return fmt.Errorf("%w: no updates", equation.ErrStatement)
	}
	s.Shape, s.Sums = Shape{uint32(len(updates)), uint32(len(updates[0]))}, nil
	sums := make([]int64, len(updates[0]))
	for _, u := range updates {
		if len(u) != len(sums) {
			return fmt.Errorf("%w: updates of %d and %d elements", equation.ErrStatement, len(sums), len(u))
		}
		for i, x := range u {
			sums[i] += int64(x)
		}
	}
	for _, x := range sums {
		s.Sums = binary.LittleEndian.AppendUint64(s.Sums, uint64(x))
	}
	return s.Shape.Validate()
}

// Proof is a proof of a statement.
type Proof struct {
	Statement   Statement `cbor:"1,keyasint"`
	Commitments [][]byte  `cbor:"2,keyasint"` // to the updates, in their order: points of G1, compressed
	Points      []byte    `cbor:"3,keyasint"` // as equation.Proof has them
}

// Magic begins the files of proofs.
const Magic = "starling aggregation 1\n"

// Encode returns the bytes of a proof with its statement.
func (p Proof) Encode() []byte { return append([]byte(Magic), canon.MustMarshal(p)...) }

// Digest names a proof with its statement.
func (p Proof) Digest() canon.Digest { return canon.Sum("starling/aggregation/1", p.Encode()) }

// Decode reads a proof, and checks the form of its statement. The proof may not hold.
func Decode(data []byte) (p Proof, err error) {
	if err := equation.Decode(data, Magic, MaxProof, &p); err != nil {
		return p, fmt.Errorf("%w: %w", equation.ErrForm, err)
	}
	return p, p.Statement.Validate()
}

// Public are the public inputs of the circuit, in its order: a number x that no party knows before the updates are
// committed to, and the sum over all elements i of x^i Sums[i]. If a sum is another than that of the committed numbers,
// a proof exists with a probability of Length / 2^253.
func Public(key canon.Digest, s Statement, commitments [][]byte) ([]fr.Element, error) {
	parts := append([][]byte{key[:], canon.MustMarshal(s)}, commitments...)
	seed := canon.Sum("starling/proof/aggregation/1", parts...)
	list, err := fr.Hash(seed[:], []byte("starling-aggregation"), 1)
	if err != nil {
		return nil, err
	}
	var sum, x fr.Element
	for i := int(s.Shape.Length) - 1; i >= 0; i-- { // by Horner's rule
		x.SetInt64(s.Sum(i))
		sum.Mul(&sum, &list[0]).Add(&sum, &x)
	}
	return append(list, sum), nil
}

// Key is a verifying key for sums of one shape, as it travels.
type Key struct {
	Shape Shape `cbor:"1,keyasint"`
	// contributions to the setup, as the maker of the key claims: see proof.Key
	Contributions uint32       `cbor:"2,keyasint"`
	Transcript    canon.Digest `cbor:"3,keyasint"` // of the contributions
	Points        []byte       `cbor:"4,keyasint"` // as equation.AppendKey has them
}

const (
	// KeyMagic begins the files of keys.
	KeyMagic = "starling aggregation key 1\n"
	// MaxKey is the most bytes of a verifying key.
	MaxKey = (MaxUpdates+8)*(points.G1Bytes+2*points.G2Bytes) + 4096

	publicInputs = 2
)

// Encode returns the bytes of a key.
func (k Key) Encode() []byte { return append([]byte(KeyMagic), canon.MustMarshal(k)...) }

// KeyDigest names a key by its bytes.
func KeyDigest(data []byte) canon.Digest { return canon.Sum("starling/aggregation/key/1", data) }

// Verifier verifies the proofs of one key.
type Verifier struct {
	key      Key
	digest   canon.Digest
	equation *equation.Key
}

// NewVerifier reads a verifying key.
func NewVerifier(data []byte) (*Verifier, error) {
	v := &Verifier{digest: KeyDigest(data)}
	err := equation.Decode(data, KeyMagic, MaxKey, &v.key)
	if err == nil {
		err = v.key.Shape.Validate()
	}
	if err == nil {
		v.equation, err = equation.ReadKey(v.key.Points, publicInputs, int(v.key.Shape.Updates))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", equation.ErrKey, err)
	}
	return v, nil
}

// Key is the key of the verifier.
func (v *Verifier) Key() Key { return v.key }

// Digest names the key of the verifier.
func (v *Verifier) Digest() canon.Digest { return v.digest }

func (v *Verifier) parts(p Proof) (public []fr.Element, made equation.Proof, err error) {
	if err := p.Statement.Validate(); err != nil {
		return nil, made, err
	}
	if p.Statement.Shape != v.key.Shape {
		return nil, made, fmt.Errorf("%w: it is for %s, and the key for %s", equation.ErrInvalid, p.Statement.Shape,
			v.key.Shape)
	}
	public, err = Public(v.digest, p.Statement, p.Commitments)
	return public, equation.Proof{Commitments: p.Commitments, Points: p.Points}, err
}

// Verify checks a proof. The error wraps equation.ErrInvalid if it does not hold, and equation.ErrForm if it is none.
func (v *Verifier) Verify(p Proof) error {
	public, made, err := v.parts(p)
	if err != nil {
		return err
	}
	return v.equation.Verify(public, made)
}

// Export verifies a proof, and returns it for snarkjs: see equation.Key.Export.
func (v *Verifier) Export(p Proof) (equation.Foreign, error) {
	public, made, err := v.parts(p)
	if err != nil {
		return equation.Foreign{}, err
	}
	return v.equation.Export(public, made)
}
