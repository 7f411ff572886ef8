package payout

import (
	"math/big"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/threshold"
)

// Sizes in bytes, of compressed points.
const (
	KeySize       = bls.SizeOfG2AffineCompressed
	SignatureSize = bls.SizeOfG1AffineCompressed
)

// Domains of hashing to the curve (RFC 9380, section 3.1). They differ from that of beacons.
const (
	suite      = "STARLING-PAYOUT-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"
	possession = "STARLING-PAYOUT-POP-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"
)

var _, _, _, base2 = bls.Generators()

// Secret is the key with which a validator signs.
type Secret struct {
	x      *big.Int
	public [KeySize]byte
}

// NewSecret derives a key from a seed, which must be known to its validator alone.
func NewSecret(seed []byte) Secret {
	a, b := canon.Sum("starling/payout/secret/a", seed), canon.Sum("starling/payout/secret/b", seed)
	var e fr.Element
	e.SetBytes(append(a[:], b[:]...)) // of 512 bits: the bias is less than 2^-250
	s := Secret{x: e.BigInt(new(big.Int))}
	var p bls.G2Affine
	p.ScalarMultiplication(&base2, s.x)
	s.public = p.Bytes()
	return s
}

// Public is the key, 96 bytes.
func (s Secret) Public() []byte { return s.public[:] }

func (s Secret) sign(message []byte, domain string) ([]byte, error) {
	h, err := bls.HashToG1(message, []byte(domain))
	if err != nil {
		return nil, err
	}
	var p bls.G1Affine
	p.ScalarMultiplication(&h, s.x)
	b := p.Bytes()
	return b[:], nil
}

// Sign signs a message, in 48 bytes.
func (s Secret) Sign(message Digest) ([]byte, error) { return s.sign(message[:], suite) }

// Possess proves that the validator with an address knows the secret of its key. Sums of keys need this: another key
// could cancel those of others.
func (s Secret) Possess(validator []byte) ([]byte, error) {
	return s.sign(append(s.public[:], validator...), possession)
}

// CheckKey reports whether a validator has proven that it knows the secret of a key.
func CheckKey(key, validator, proof []byte) bool {
	k, err := threshold.ReadG2(key)
	if err != nil {
		return false
	}
	p, err := threshold.ReadG1(proof)
	return err == nil && threshold.VerifyUnder(possession, &k, append(append([]byte(nil), key...), validator...), &p)
}

// Verify reports whether a signature is that of a key.
func Verify(key []byte, message Digest, signature []byte) bool {
	k, err := threshold.ReadG2(key)
	if err != nil {
		return false
	}
	s, err := threshold.ReadG1(signature)
	return err == nil && threshold.VerifyUnder(suite, &k, message[:], &s)
}

// Add is the sum of signatures.
func Add(signatures [][]byte) ([]byte, error) {
	var sum bls.G1Jac
	for _, b := range signatures {
		p, err := threshold.ReadG1(b)
		if err != nil {
			return nil, err
		}
		var j bls.G1Jac
		sum.AddAssign(j.FromAffine(&p))
	}
	var p bls.G1Affine
	p.FromJacobian(&sum)
	b := p.Bytes()
	return b[:], nil
}

// padded writes elements of the field, 48 bytes each, as EIP-2537 does: with 16 zeros before each.
func padded(elements ...[]byte) []byte {
	var out []byte
	for _, e := range elements {
		out = append(append(out, make([]byte, 16)...), e...)
	}
	return out
}

// precompiled1 is a compressed point of G1 as the precompiled contracts read it, 128 bytes.
func precompiled1(b []byte) ([]byte, error) {
	p, err := threshold.ReadG1(b)
	if err != nil {
		return nil, err
	}
	x, y := p.X.Bytes(), p.Y.Bytes()
	return padded(x[:], y[:]), nil
}

// precompiled2 is a compressed point of G2 as the precompiled contracts read it, 256 bytes.
func precompiled2(b []byte) ([]byte, error) {
	p, err := threshold.ReadG2(b)
	if err != nil {
		return nil, err
	}
	x0, x1, y0, y1 := p.X.A0.Bytes(), p.X.A1.Bytes(), p.Y.A0.Bytes(), p.Y.A1.Bytes()
	return padded(x0[:], x1[:], y0[:], y1[:]), nil
}
