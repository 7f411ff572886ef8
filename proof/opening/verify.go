package opening

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/points"
)

// VerifyingKey is the key of proofs about a number of leaves, as it travels.
type VerifyingKey struct {
	Leaves uint32 `cbor:"1,keyasint"`
	// contributions to the setup, as the maker of the key claims: see proof.Key
	Contributions uint32       `cbor:"2,keyasint"`
	Transcript    canon.Digest `cbor:"3,keyasint"` // of the contributions
	// points, not compressed: alpha of G1; beta, gamma and delta of G2; then those of G1 for one and for each public input
	Points []byte `cbor:"4,keyasint"`
}

const (
	keyMagic = "starling opening key 1\n"
	// MaxKey is the most bytes of a verifying key.
	MaxKey = (2*MaxLeaves+3)*points.G1Bytes + 3*points.G2Bytes + 512
)

// publicInputs are the digest of the key, and number and key of each leaf.
func publicInputs(leaves int) int { return 1 + 2*leaves }

// MakeKey returns the bytes of a verifying key of points.
func MakeKey(k VerifyingKey, alpha bn254.G1Affine, beta, gamma, delta bn254.G2Affine, inputs []bn254.G1Affine) []byte {
	k.Points = points.AppendG1(points.AppendG2(points.AppendG1(nil, alpha), beta, gamma, delta), inputs...)
	return append([]byte(keyMagic), canon.MustMarshal(k)...)
}

// Verifier verifies the proofs of one key.
type Verifier struct {
	key                VerifyingKey
	digest             canon.Digest
	alpha              bn254.G1Affine
	beta, gamma, delta bn254.G2Affine
	inputs             []bn254.G1Affine // for one, and for each public input
}

// KeyDigest names a verifying key by its bytes.
func KeyDigest(data []byte) canon.Digest { return canon.Sum("starling/opening/key/1", data) }

// NewVerifier reads a verifying key.
func NewVerifier(data []byte) (*Verifier, error) {
	v := &Verifier{digest: KeyDigest(data)}
	err := decode(data, keyMagic, MaxKey, &v.key)
	if err == nil {
		err = CheckLeaves(int(v.key.Leaves))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	n := publicInputs(int(v.key.Leaves)) + 1
	if got, want := len(v.key.Points), (n+1)*points.G1Bytes+3*points.G2Bytes; got != want {
		return nil, fmt.Errorf("%w: %d bytes of points, wanted %d", ErrKey, got, want)
	}
	r := points.Reader{Data: v.key.Points}
	r.G1(&v.alpha)
	for _, p := range []*bn254.G2Affine{&v.beta, &v.gamma, &v.delta} {
		r.G2(p)
	}
	v.inputs = make([]bn254.G1Affine, n)
	for i := range v.inputs {
		r.G1(&v.inputs[i])
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return v, nil
}

// Key is the key of the verifier.
func (v *Verifier) Key() VerifyingKey { return v.key }

// Leaves is the number of leaves that a proof is about.
func (v *Verifier) Leaves() int { return int(v.key.Leaves) }

// Digest names the key of the verifier.
func (v *Verifier) Digest() canon.Digest { return v.digest }

// MakePoints returns the points of a proof as an Opening holds them.
func MakePoints(a bn254.G1Affine, b bn254.G2Affine, c bn254.G1Affine) []byte {
	x, y, z := a.Bytes(), b.Bytes(), c.Bytes()
	return append(append(x[:], y[:]...), z[:]...)
}

// Verify checks that the keys of an opening are those of the leaves, by the key with a digest. The error wraps
// ErrInvalid if it does not hold, and ErrOpening if it is none.
func (v *Verifier) Verify(key canon.Digest, leaves []uint64, o Opening) error {
	if n := v.Leaves(); len(leaves) != n || len(o.Keys) != n*KeyBytes {
		return fmt.Errorf("%w: %d leaves and %d bytes of keys, and the verifying key is for %d leaves", ErrOpening,
			len(leaves), len(o.Keys), n)
	}
	if o.Verifying != v.digest {
		return fmt.Errorf("%w: it was made with the keys %s of a setup, and is verified with %s", ErrInvalid,
			o.Verifying.Short(), v.digest.Short())
	}
	public := make([]fr.Element, publicInputs(len(leaves)))
	if err := public[0].SetBytesCanonical(key[:]); err != nil {
		return fmt.Errorf("%w: the digest of the key: %w", ErrInvalid, err)
	}
	for i, leaf := range leaves {
		public[1+i].SetUint64(leaf)
		if err := public[1+len(leaves)+i].SetBytesCanonical(o.Key(i)); err != nil {
			return fmt.Errorf("%w: the key of a leaf: %w", ErrOpening, err)
		}
	}
	var a, c, sum bn254.G1Affine
	var b bn254.G2Affine
	r := points.Reader{Data: o.Points}
	r.ShortG1(&a)
	r.ShortG2(&b)
	r.ShortG1(&c)
	if err := r.End(); err != nil {
		return fmt.Errorf("%w: %w", ErrOpening, err)
	}
	if _, err := sum.MultiExp(v.inputs[1:], public, ecc.MultiExpConfig{}); err != nil {
		return err
	}
	sum.Add(&sum, &v.inputs[0])
	a.Neg(&a)
	ok, err := bn254.PairingCheck([]bn254.G1Affine{a, v.alpha, sum, c}, []bn254.G2Affine{b, v.beta, v.gamma, v.delta})
	if err != nil {
		return err
	}
	if !ok {
		return ErrInvalid
	}
	return nil
}
