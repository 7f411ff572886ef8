package proof

import (
	"fmt"

	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/pedersen"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/points"
)

// Key is a verifying key for adapters of one shape, as it travels.
type Key struct {
	Shape Shape `cbor:"1,keyasint"`
	// contributions to the setup, each a party that says it forgot its part: if one of them did, no party can forge
	// proofs. The number is the claim of the maker of the key; a party with the transcript checks it.
	Contributions uint32       `cbor:"2,keyasint"`
	Transcript    canon.Digest `cbor:"3,keyasint"` // of the contributions
	// points, not compressed: alpha of G1; beta, gamma and delta of G2; both points of G2 of the commitment; then those
	// of G1 for one, for each public input and for the commitment
	Points []byte `cbor:"4,keyasint"`
}

const (
	keyMagic = "starling proof key 1\n"

	// MaxKey is the most bytes of a verifying key.
	MaxKey = (MaxWidth+8)*points.G1Bytes + 4096
)

// publicInputs of a circuit: the point, the sum, and the inputs of the layer, folded.
func (s Shape) publicInputs() int { return 2 + int(s.In) }

func (s Shape) pointBytes() int {
	return points.G1Bytes + 5*points.G2Bytes + (s.publicInputs()+2)*points.G1Bytes
}

// Encode returns the bytes of a key.
func (k Key) Encode() []byte { return append([]byte(keyMagic), canon.MustMarshal(k)...) }

// Verifier verifies the proofs of one key.
type Verifier struct {
	key    Key
	digest canon.Digest

	alpha              bn254.G1Affine
	beta, gamma, delta bn254.G2Affine
	commitment         pedersen.VerifyingKey
	inputs             []bn254.G1Affine // for one, for each public input, and for the commitment
}

// KeyDigest names a key by its bytes.
func KeyDigest(data []byte) canon.Digest { return canon.Sum("starling/proof/key/1", data) }

// NewVerifier reads a verifying key. It costs about 5 microseconds for each public input.
func NewVerifier(data []byte) (*Verifier, error) {
	v := &Verifier{digest: KeyDigest(data)}
	if err := decode(data, keyMagic, MaxKey, &v.key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if err := v.key.Shape.Validate(); err != nil {
		return nil, err
	}
	if got, want := len(v.key.Points), v.key.Shape.pointBytes(); got != want {
		return nil, fmt.Errorf("%w: %d bytes of points, wanted %d", ErrKey, got, want)
	}
	v.inputs = make([]bn254.G1Affine, v.key.Shape.publicInputs()+2)
	r := points.Reader{Data: v.key.Points}
	r.G1(&v.alpha)
	r.G2(&v.beta)
	r.G2(&v.gamma)
	r.G2(&v.delta)
	r.G2(&v.commitment.G)
	r.G2(&v.commitment.GSigmaNeg)
	for i := range v.inputs {
		r.G1(&v.inputs[i])
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return v, nil
}

// Key is the key of the verifier.
func (v *Verifier) Key() Key { return v.key }

// Digest names the key of the verifier.
func (v *Verifier) Digest() canon.Digest { return v.digest }

// MakeKey returns the bytes of a key of points.
func MakeKey(k Key, alpha bn254.G1Affine, beta, gamma, delta bn254.G2Affine, commitment pedersen.VerifyingKey,
	inputs []bn254.G1Affine) []byte {
	k.Points = points.AppendG2(points.AppendG1(nil, alpha), beta, gamma, delta, commitment.G, commitment.GSigmaNeg)
	k.Points = points.AppendG1(k.Points, inputs...)
	return k.Encode()
}
