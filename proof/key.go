package proof

import (
	"fmt"
	"slices"

	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/pedersen"

	"github.com/starling-network/starling/canon"
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
	g1Bytes  = bn254.SizeOfG1AffineUncompressed
	g2Bytes  = bn254.SizeOfG2AffineUncompressed

	// MaxKey is the most bytes of a verifying key.
	MaxKey = (MaxWidth+8)*g1Bytes + 4096
)

// publicInputs of a circuit: the point, the sum, and the inputs of the layer, folded.
func (s Shape) publicInputs() int { return 2 + int(s.In) }

func (s Shape) pointBytes() int { return g1Bytes + 5*g2Bytes + (s.publicInputs()+2)*g1Bytes }

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
	r := reader{data: v.key.Points}
	r.g1(&v.alpha)
	r.g2(&v.beta)
	r.g2(&v.gamma)
	r.g2(&v.delta)
	r.g2(&v.commitment.G)
	r.g2(&v.commitment.GSigmaNeg)
	for i := range v.inputs {
		r.g1(&v.inputs[i])
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, r.err)
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
	k.Points = nil
	one := func(p bn254.G1Affine) { b := p.RawBytes(); k.Points = append(k.Points, b[:]...) }
	two := func(p bn254.G2Affine) { b := p.RawBytes(); k.Points = append(k.Points, b[:]...) }
	one(alpha)
	for _, p := range []bn254.G2Affine{beta, gamma, delta, commitment.G, commitment.GSigmaNeg} {
		two(p)
	}
	for _, p := range inputs {
		one(p)
	}
	return k.Encode()
}

// reader reads points one after another, which are on the curve, in the subgroup, and not zero.
type reader struct {
	data []byte
	err  error
}

// take cuts the next bytes off, of a point that is compressed or not.
func (r *reader) take(n int, compressed bool) []byte {
	if r.err != nil || len(r.data) < n {
		if r.err == nil {
			r.err = fmt.Errorf("%d bytes are left for a point of %d", len(r.data), n)
		}
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	zero := !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
	if (b[0]&0x80 != 0) != compressed || b[0]&0xc0 == 0x40 || zero {
		r.err = fmt.Errorf("a point of %d bytes is zero, or in another form", n)
		return nil
	}
	return b
}

func (r *reader) g1(p *bn254.G1Affine) { r.set(p.SetBytes, r.take(g1Bytes, false)) }

func (r *reader) g2(p *bn254.G2Affine) { r.set(p.SetBytes, r.take(g2Bytes, false)) }

func (r *reader) set(setBytes func([]byte) (int, error), b []byte) {
	if r.err != nil {
		return
	}
	if n, err := setBytes(b); err != nil || n != len(b) {
		r.err = fmt.Errorf("a point of %d bytes: %w", len(b), err)
	}
}
