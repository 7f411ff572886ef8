package proof

import (
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/hash_to_field"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/points"
)

// commitmentDomain separates the hash of commitments to weights, as gnark has it.
const commitmentDomain = "bsb22-commitment"

// challengeDomain separates the hash of challenges.
const challengeDomain = "starling-adapter"

// parts are the points of a proof: A, B and C of Groth16, and the proof that the weights are known.
type parts struct {
	a, c, known bn254.G1Affine
	b           bn254.G2Affine
	commitment  bn254.G1Affine
}

func (p Proof) parts() (q parts, err error) {
	r := &points.Reader{Data: p.Points}
	r.ShortG1(&q.a)
	r.ShortG2(&q.b)
	r.ShortG1(&q.c)
	r.ShortG1(&q.known)
	last := &points.Reader{Data: p.Commitment, Err: r.End()}
	last.ShortG1(&q.commitment)
	if err := last.End(); err != nil {
		return q, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return q, nil
}

// MakePoints returns the points of a proof as a Proof holds them.
func MakePoints(a bn254.G1Affine, b bn254.G2Affine, c, known bn254.G1Affine) (data []byte) {
	x, y, z, w := a.Bytes(), b.Bytes(), c.Bytes(), known.Bytes()
	return append(append(append(append(data, x[:]...), y[:]...), z[:]...), w[:]...)
}

// Public are the public inputs of a circuit. With the challenges Point and fold, which no party knows before the
// weights are committed to, a proof of
//
//	Sum = sum over k of (sum over i of Point^i B[i][k]) * (sum over j of A[k][j] * Inputs[j])
//
// is one of the statement, except with a probability of (tokens + Out) / 2^253: Inputs are the sum of the inputs of the
// tokens, each times a power of fold, and Sum is that of all outputs times powers of both.
type Public struct {
	Point, Sum fr.Element
	Inputs     []fr.Element // [Shape.In]
}

// Fold computes the public inputs of a statement for a key and a commitment to weights.
func Fold(key canon.Digest, s Statement, commitment []byte) (Public, error) {
	seed := canon.Sum("starling/proof/adapter/1", key[:], canon.MustMarshal(s), commitment)
	challenge, err := fr.Hash(seed[:], []byte(challengeDomain), 2)
	if err != nil {
		return Public{}, err
	}
	p, fold := Public{Point: challenge[0], Inputs: make([]fr.Element, s.Shape.In)}, challenge[1]
	var x fr.Element
	for t := len(s.Tokens) - 1; t >= 0; t-- { // by Horner's rule: the first token has the power 0
		for j := range p.Inputs {
			x.SetInt64(int64(s.input(t*len(p.Inputs) + j)))
			p.Inputs[j].Mul(&p.Inputs[j], &fold).Add(&p.Inputs[j], &x)
		}
		var row fr.Element
		for i := int(s.Shape.Out) - 1; i >= 0; i-- {
			x.SetInt64(s.output(t*int(s.Shape.Out) + i))
			row.Mul(&row, &p.Point).Add(&row, &x)
		}
		p.Sum.Mul(&p.Sum, &fold).Add(&p.Sum, &row)
	}
	return p, nil
}

// list is the inputs in the order of the circuit.
func (p Public) list() []fr.Element { return append([]fr.Element{p.Point, p.Sum}, p.Inputs...) }

// hashed is the public input that the commitment gives.
func hashed(commitment bn254.G1Affine) (x fr.Element, err error) {
	h := hash_to_field.New([]byte(commitmentDomain))
	if _, err = h.Write(commitment.Marshal()); err != nil {
		return x, err
	}
	x.SetBytes(h.Sum(nil))
	return x, nil
}

// fixed is the part of the sum over the public inputs that is the same for all proofs under a commitment.
func (v *Verifier) fixed(commitment bn254.G1Affine) (sum bn254.G1Affine, err error) {
	h, err := hashed(commitment)
	if err != nil {
		return sum, err
	}
	sum.ScalarMultiplication(&v.inputs[len(v.inputs)-1], h.BigInt(new(big.Int)))
	sum.Add(&sum, &commitment)
	sum.Add(&sum, &v.inputs[0])
	return sum, nil
}

// Verify checks a proof. The error wraps ErrInvalid if it does not hold, and ErrProof if it is none.
func (v *Verifier) Verify(p Proof) error {
	if err := p.Statement.Validate(); err != nil {
		return err
	}
	if p.Statement.Shape != v.key.Shape {
		return fmt.Errorf("%w: it is for %s, and the key for %s", ErrInvalid, p.Statement.Shape, v.key.Shape)
	}
	q, err := p.parts()
	if err != nil {
		return err
	}
	if err := v.commitment.Verify(q.commitment, q.known); err != nil {
		return fmt.Errorf("%w: the weights under the commitment are not known: %w", ErrInvalid, err)
	}
	public, err := Fold(v.digest, p.Statement, p.Commitment)
	if err != nil {
		return err
	}
	fixed, err := v.fixed(q.commitment)
	if err != nil {
		return err
	}
	var sum, negative bn254.G1Affine
	if _, err := sum.MultiExp(v.inputs[1:len(v.inputs)-1], public.list(), ecc.MultiExpConfig{}); err != nil {
		return err
	}
	sum.Add(&sum, &fixed)
	negative.Neg(&q.a)
	ok, err := bn254.PairingCheck([]bn254.G1Affine{negative, v.alpha, sum, q.c},
		[]bn254.G2Affine{q.b, v.beta, v.gamma, v.delta})
	if err != nil {
		return err
	}
	if !ok {
		return ErrInvalid
	}
	return nil
}
