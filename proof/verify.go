package proof

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
)

// challengeDomain separates the hash of challenges.
const challengeDomain = "starling-adapter"

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

// parts are the parts of a proof as package equation has them.
func (p Proof) parts() equation.Proof {
	return equation.Proof{Commitments: [][]byte{p.Commitment}, Points: p.Points}
}

// inputs are the public inputs of a proof by this key.
func (v *Verifier) inputs(p Proof) ([]fr.Element, error) {
	if err := p.Statement.Validate(); err != nil {
		return nil, err
	}
	if p.Statement.Shape != v.key.Shape {
		return nil, fmt.Errorf("%w: it is for %s, and the key for %s", ErrInvalid, p.Statement.Shape, v.key.Shape)
	}
	public, err := Fold(v.digest, p.Statement, p.Commitment)
	return public.list(), err
}

// Verify checks a proof. The error wraps ErrInvalid if it does not hold, and ErrProof if it is none.
func (v *Verifier) Verify(p Proof) error {
	public, err := v.inputs(p)
	if err != nil {
		return err
	}
	return v.equation.Verify(public, p.parts())
}

// Export verifies a proof, and returns it for snarkjs: see equation.Key.Export.
func (v *Verifier) Export(p Proof) (equation.Foreign, error) {
	public, err := v.inputs(p)
	if err != nil {
		return equation.Foreign{}, err
	}
	return v.equation.Export(public, p.parts())
}
