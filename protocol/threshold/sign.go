package threshold

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	bls "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// suite is the domain of hashing to the curve (RFC 9380, section 3.1).
const suite = "STARLING-BEACON-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"

// Public is the key of the group that the deals of the dealers make.
func Public(deals []Deal) ([]byte, error) {
	var sum bls.G2Jac
	for i, d := range deals {
		if len(d.Commitments) < CommitmentSize {
			return nil, fmt.Errorf("%w: deal %d has no commitment", ErrInvalid, i)
		}
		p, err := ReadG2(d.Commitments[:CommitmentSize])
		if err != nil {
			return nil, err
		}
		var j bls.G2Jac
		sum.AddAssign(j.FromAffine(&p))
	}
	var p bls.G2Affine
	p.FromJacobian(&sum)
	if p.IsInfinity() {
		return nil, fmt.Errorf("%w: the key of a group is zero", ErrInvalid)
	}
	b := p.Bytes()
	return b[:], nil
}

// Shares are the parts of the group's key that a member has, as the deals of the dealers give them.
type Shares []fr.Element

// Own adds up the shares of a member. A share that is wrong in any deal is an error: the member cannot sign.
func Own(s Secret, r Roster, dealers []uint32, deals []Deal, member int) (Shares, error) {
	sum := make(Shares, r.Members[member].Shares)
	for i, d := range deals {
		got, complaint, err := d.Read(s, r, int(dealers[i]), member)
		if err != nil {
			return nil, err
		}
		if complaint != nil {
			return nil, fmt.Errorf("%w: share %d of dealer %d", ErrInvalid, complaint.Share, complaint.Dealer)
		}
		for j := range sum {
			sum[j].Add(&sum[j], &got[j])
		}
	}
	return sum, nil
}

// Sign makes the partial signatures of a member, 48 bytes for each of its shares.
func (s Shares) Sign(message []byte) ([]byte, error) {
	h, err := bls.HashToG1(message, []byte(suite))
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, x := range s {
		p := mul1(&h, x)
		b := p.Bytes()
		out = append(out, b[:]...)
	}
	return out, nil
}

// Verifier checks partial signatures.
type Verifier struct {
	roster Roster
	keys   []bls.G2Affine // of the shares
}

// NewVerifier computes the public keys of all shares: a few tens of milliseconds for 21 members.
func NewVerifier(r Roster, deals []Deal) (*Verifier, error) {
	sums := make([]bls.G2Jac, r.Threshold)
	for _, d := range deals {
		c, err := d.commitments()
		if err != nil {
			return nil, err
		}
		if len(c) != len(sums) {
			return nil, fmt.Errorf("%w: %d commitments", ErrInvalid, len(c))
		}
		for j := range sums {
			var p bls.G2Jac
			sums[j].AddAssign(p.FromAffine(&c[j]))
		}
	}
	coefficients := make([]bls.G2Affine, len(sums))
	for j := range sums {
		coefficients[j].FromJacobian(&sums[j])
	}
	v := &Verifier{roster: r, keys: make([]bls.G2Affine, r.Size())}
	for i := range v.keys {
		v.keys[i] = evaluate2(coefficients, i+1)
	}
	return v, nil
}

// Check reports whether the partial signatures of a member are right. All of them are checked at once, under numbers
// that come from them, so that wrong ones do not make up for each other.
func (v *Verifier) Check(member int, message, partials []byte) bool {
	points, err := split(partials, int(v.roster.Members[member].Shares))
	if err != nil || len(points) == 0 {
		return false
	}
	var sum bls.G1Jac
	var key bls.G2Jac
	first := v.roster.First(member) - 1
	for i := range points {
		weight := fr.One()
		if i > 0 {
			weight = scalar("weight", message, partials, number(i))
		}
		p, k := mul1(&points[i], weight), mul2(&v.keys[first+i], weight)
		var a bls.G1Jac
		var b bls.G2Jac
		sum.AddAssign(a.FromAffine(&p))
		key.AddAssign(b.FromAffine(&k))
	}
	var s bls.G1Affine
	var k bls.G2Affine
	s.FromJacobian(&sum)
	k.FromJacobian(&key)
	return VerifyUnder(suite, &k, message, &s)
}

// Verify reports whether a signature is that of the group of a public key.
func Verify(public, message, signature []byte) bool {
	k, err := ReadG2(public)
	if err != nil {
		return false
	}
	s, err := ReadG1(signature)
	return err == nil && VerifyUnder(suite, &k, message, &s)
}

// VerifyUnder reports whether a signature is that of a key, with a domain of hashing to the curve.
func VerifyUnder(domain string, key *bls.G2Affine, message []byte, s *bls.G1Affine) bool {
	h, err := bls.HashToG1(message, []byte(domain))
	if err != nil {
		return false
	}
	var minus bls.G2Affine
	minus.Neg(&base2)
	ok, err := bls.PairingCheck([]bls.G1Affine{h, *s}, []bls.G2Affine{*key, minus})
	return err == nil && ok
}

// split reads partial signatures.
func split(partials []byte, n int) ([]bls.G1Affine, error) {
	if len(partials) != n*SignatureSize {
		return nil, fmt.Errorf("%w: %d bytes of partial signatures, wanted %d of %d", ErrInvalid, len(partials), n,
			SignatureSize)
	}
	out := make([]bls.G1Affine, n)
	for i := range out {
		var err error
		if out[i], err = ReadG1(partials[i*SignatureSize : (i+1)*SignatureSize]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Partial has the partial signatures of one member.
type Partial struct {
	Member int
	Bytes  []byte
}

// Combine makes the signature of the group of the partial signatures of members in the order of the roster: nil if they
// are fewer than sign. If one of them is wrong, so is the signature.
func Combine(r Roster, partials []Partial) []byte {
	var points []bls.G1Affine
	var at []fr.Element
	for _, p := range partials {
		if len(at) >= int(r.Threshold) {
			break
		}
		these, err := split(p.Bytes, int(r.Members[p.Member].Shares))
		if err != nil {
			continue
		}
		first := r.First(p.Member)
		for i := range these {
			points, at = append(points, these[i]), append(at, fr.NewElement(uint64(first+i)))
		}
	}
	t := int(r.Threshold)
	if len(at) < t {
		return nil
	}
	var sum bls.G1Affine
	if _, err := sum.MultiExp(points[:t], lagrange(at[:t]), ecc.MultiExpConfig{NbTasks: 1}); err != nil ||
		sum.IsInfinity() {
		return nil
	}
	b := sum.Bytes()
	return b[:]
}

// lagrange are the factors with which values of a polynomial at some numbers make its value at zero.
func lagrange(at []fr.Element) []fr.Element {
	out := make([]fr.Element, len(at))
	for i := range at {
		over, under := fr.One(), fr.One()
		for j := range at {
			if i == j {
				continue
			}
			over.Mul(&over, &at[j])
			var d fr.Element
			d.Sub(&at[j], &at[i])
			under.Mul(&under, &d)
		}
		out[i].Div(&over, &under)
	}
	return out
}
