package proof

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/points"
)

// Key is a verifying key for adapters of one shape, as it travels.
type Key struct {
	Shape Shape `cbor:"1,keyasint"`
	// contributions to the setup, each a party that says it forgot its part: if one of them did, no party can forge
	// proofs. The number is the claim of the maker of the key; a party with the transcript checks it.
	Contributions uint32       `cbor:"2,keyasint"`
	Transcript    canon.Digest `cbor:"3,keyasint"` // of the contributions
	Points        []byte       `cbor:"4,keyasint"` // as equation.AppendKey has them
}

const (
	// KeyMagic begins the files of keys for adapters.
	KeyMagic = "starling proof key 1\n"

	// MaxKey is the most bytes of a verifying key.
	MaxKey = (MaxWidth+8)*points.G1Bytes + 4096
)

// publicInputs of a circuit: the point, the sum, and the inputs of the layer, folded.
func (s Shape) publicInputs() int { return 2 + int(s.In) }

// Encode returns the bytes of a key.
func (k Key) Encode() []byte { return append([]byte(KeyMagic), canon.MustMarshal(k)...) }

// Verifier verifies the proofs of one key.
type Verifier struct {
	key    Key
	digest canon.Digest

	equation *equation.Key
}

// KeyDigest names a key by its bytes.
func KeyDigest(data []byte) canon.Digest { return canon.Sum("starling/proof/key/1", data) }

// NewVerifier reads a verifying key. It costs about 5 microseconds for each public input.
func NewVerifier(data []byte) (*Verifier, error) {
	v := &Verifier{digest: KeyDigest(data)}
	if err := equation.Decode(data, KeyMagic, MaxKey, &v.key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if err := v.key.Shape.Validate(); err != nil {
		return nil, err
	}
	var err error
	if v.equation, err = equation.ReadKey(v.key.Points, v.key.Shape.publicInputs(), 1); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return v, nil
}

// Key is the key of the verifier.
func (v *Verifier) Key() Key { return v.key }

// Digest names the key of the verifier.
func (v *Verifier) Digest() canon.Digest { return v.digest }
