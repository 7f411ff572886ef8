package inference

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/points"
)

// Key is a verifying key for networks of one shape, as it travels.
type Key struct {
	Shape Shape `cbor:"1,keyasint"`
	// contributions to the setup, as the maker of the key claims: see proof.Key
	Contributions uint32       `cbor:"2,keyasint"`
	Transcript    canon.Digest `cbor:"3,keyasint"` // of the contributions
	Points        []byte       `cbor:"4,keyasint"` // as equation.AppendKey has them
}

const (
	// KeyMagic begins the files of keys.
	KeyMagic = "starling inference key 1\n"
	// MaxKey is the most bytes of a verifying key.
	MaxKey = (MaxInputs+MaxClasses+16)*points.G1Bytes + 4096
)

// Encode returns the bytes of a key.
func (k Key) Encode() []byte { return append([]byte(KeyMagic), canon.MustMarshal(k)...) }

// KeyDigest names a key by its bytes.
func KeyDigest(data []byte) canon.Digest { return canon.Sum("starling/inference/key/1", data) }

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
		v.equation, err = equation.ReadKey(v.key.Points, 1+v.key.Shape.Inputs()+v.key.Shape.Classes(), 1)
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
	if a, b := p.Statement.Shape.String(), v.key.Shape.String(); a != b {
		return nil, made, fmt.Errorf("%w: it is for %s, and the key for %s", equation.ErrInvalid, a, b)
	}
	public, err = Public(v.digest, p.Statement, p.Commitment)
	return public, equation.Proof{Commitments: [][]byte{p.Commitment}, Points: p.Points}, err
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
