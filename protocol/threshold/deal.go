package threshold

import (
	"fmt"
	"math/big"

	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/starling-network/starling/canon"
)

var _, _, base1, base2 = bls.Generators()

func bigOf(s fr.Element) *big.Int { return s.BigInt(new(big.Int)) }

// Secret is the private key of a member: it decrypts the member's shares, and its deals derive from it.
type Secret struct {
	x      fr.Element
	public [KeySize]byte
}

// NewSecret derives a secret from a seed, which must be known to its member alone.
func NewSecret(seed []byte) Secret {
	s := Secret{x: scalar("secret", seed)}
	p := mul1(&base1, s.x)
	s.public = p.Bytes()
	return s
}

// Public is the member's key.
func (s Secret) Public() []byte { return s.public[:] }

// derive is a secret number for one purpose.
func (s Secret) derive(purpose string, parts ...[]byte) fr.Element {
	b := s.x.Bytes()
	return scalar(purpose, append([][]byte{b[:]}, parts...)...)
}

// CheckKey reports what is wrong with the key of a member.
func CheckKey(b []byte) error {
	_, err := ReadG1(b)
	return err
}

// Deal is the contribution of one member: a polynomial of its own, evaluated at the number of every share. It is a
// function of the member's secret and the roster.
type Deal struct {
	Commitments []byte `cbor:"1,keyasint"` // the coefficients in the exponent of the generator of G2, Threshold x 96 bytes
	Ephemeral   []byte `cbor:"2,keyasint"` // r in the exponent of the generator of G1
	// that the dealer knows r (Schnorr), 64 bytes: none can deal under another's Ephemeral
	Proof  []byte `cbor:"3,keyasint"`
	Shares []byte `cbor:"4,keyasint"` // 32 bytes for every share, each under a key of dealer and member
}

// NewDeal makes the deal of a member.
func NewDeal(s Secret, r Roster, member int) Deal {
	id := r.ID()
	var d Deal
	coefficients := make([]fr.Element, r.Threshold)
	for j := range coefficients {
		coefficients[j] = s.derive("coefficient", id[:], number(j))
		a := mul2(&base2, coefficients[j])
		b := a.Bytes()
		d.Commitments = append(d.Commitments, b[:]...)
	}
	e := s.derive("ephemeral", id[:])
	ephemeral := mul1(&base1, e)
	point := ephemeral.Bytes()
	d.Ephemeral = point[:]
	k := s.derive("nonce of the ephemeral", id[:])
	t := mul1(&base1, k)
	d.Proof = answer(k, e, d.challenge(id, r.Members[member], &t))
	at := 1
	for _, m := range r.Members {
		key, err := ReadG1(m.Key)
		for range m.Shares {
			y := evaluate(coefficients, at)
			share := y.Bytes()
			if err == nil { // a key that is none gets nothing; CheckKey keeps it out of rosters
				shared := mul1(&key, e)
				hide(share[:], pad(id, r.Members[member], m, &shared, at))
			}
			d.Shares = append(d.Shares, share[:]...)
			at++
		}
	}
	return d
}

func (d Deal) challenge(id canon.Digest, dealer Member, t *bls.G1Affine) fr.Element {
	b := t.Bytes()
	return scalar("proof of the ephemeral", id[:], dealer.Address, d.Ephemeral, b[:])
}

// answer is a proof of Schnorr: the challenge c, and k + c x.
func answer(k, x, c fr.Element) []byte {
	var z fr.Element
	z.Mul(&c, &x).Add(&z, &k)
	a, b := c.Bytes(), z.Bytes()
	return append(a[:], b[:]...)
}

// read is the inverse of answer.
func read(proof []byte) (c, z fr.Element, err error) {
	if len(proof) != proofSize {
		return c, z, fmt.Errorf("%w: a proof of %d bytes", ErrInvalid, len(proof))
	}
	if err = c.SetBytesCanonical(proof[:fr.Bytes]); err == nil {
		err = z.SetBytesCanonical(proof[fr.Bytes:])
	}
	return c, z, err
}

// commitment is base^z / power^c: the first message of the prover, if it knows the exponent.
func commitment(base, power *bls.G1Affine, c, z fr.Element) bls.G1Affine {
	a, b := mul1(base, z), mul1(power, c)
	a.Sub(&a, &b)
	return a
}

// Check reports what is wrong with the public part of a member's deal. Each share can be read only by its recipient.
func (d Deal) Check(r Roster, member int) error {
	if len(d.Shares) != r.Size()*ShareSize || len(d.Commitments) != int(r.Threshold)*CommitmentSize {
		return fmt.Errorf("%w: a deal of %d and %d bytes", ErrInvalid, len(d.Commitments), len(d.Shares))
	}
	for i := range int(r.Threshold) {
		if _, err := ReadG2(d.Commitments[i*CommitmentSize : (i+1)*CommitmentSize]); err != nil {
			return err
		}
	}
	ephemeral, err := ReadG1(d.Ephemeral)
	if err != nil {
		return err
	}
	c, z, err := read(d.Proof)
	if err != nil {
		return err
	}
	t := commitment(&base1, &ephemeral, c, z)
	if want := d.challenge(r.ID(), r.Members[member], &t); !want.Equal(&c) {
		return fmt.Errorf("%w: the proof of a deal", ErrInvalid)
	}
	return nil
}

// commitments are the coefficients of a deal that passed Check.
func (d Deal) commitments() ([]bls.G2Affine, error) {
	out := make([]bls.G2Affine, len(d.Commitments)/CommitmentSize)
	dec := bls.NewDecoder(newReader(d.Commitments), bls.NoSubgroupChecks())
	for i := range out {
		if err := dec.Decode(&out[i]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return out, nil
}

// evaluate is the polynomial at the number of a share.
func evaluate(coefficients []fr.Element, at int) (y fr.Element) {
	x := fr.NewElement(uint64(at))
	for i := len(coefficients) - 1; i >= 0; i-- {
		y.Mul(&y, &x).Add(&y, &coefficients[i])
	}
	return y
}

// evaluate2 is the polynomial at the number of a share, in the exponent.
func evaluate2(coefficients []bls.G2Affine, at int) (out bls.G2Affine) {
	var y bls.G2Jac
	x := big.NewInt(int64(at))
	for i := len(coefficients) - 1; i >= 0; i-- {
		var c bls.G2Jac
		c.FromAffine(&coefficients[i])
		if i < len(coefficients)-1 {
			y.ScalarMultiplication(&y, x)
			y.AddAssign(&c)
		} else {
			y.Set(&c)
		}
	}
	out.FromJacobian(&y)
	return out
}

// pad hides one share from all but its dealer and the member.
func pad(id canon.Digest, dealer, to Member, shared *bls.G1Affine, at int) canon.Digest {
	b := shared.Bytes()
	return canon.Sum("starling/threshold/pad/1", id[:], dealer.Address, to.Address, b[:], number(at))
}

func hide(share []byte, pad canon.Digest) {
	for i := range share {
		share[i] ^= pad[i]
	}
}
