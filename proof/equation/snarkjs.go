package equation

import (
	"fmt"
	"math/big"

	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
)

// Foreign is a proof in the form of snarkjs and circom.
type Foreign struct {
	Key    ForeignKey   `json:"verification_key"`
	Proof  ForeignProof `json:"proof"`
	Public []string     `json:"public"`
}

// ForeignKey is a verifying key of snarkjs. It is that of some commitments, which are a part of its first point:
// all proofs about the same committed wires have the same.
type ForeignKey struct {
	Protocol string      `json:"protocol"`
	Curve    string      `json:"curve"`
	Public   int         `json:"nPublic"`
	Alpha    [3]string   `json:"vk_alpha_1"`
	Beta     foreignG2   `json:"vk_beta_2"`
	Gamma    foreignG2   `json:"vk_gamma_2"`
	Delta    foreignG2   `json:"vk_delta_2"`
	Inputs   [][3]string `json:"IC"`
}

// ForeignProof is a proof of snarkjs.
type ForeignProof struct {
	Protocol string    `json:"protocol"`
	Curve    string    `json:"curve"`
	A        [3]string `json:"pi_a"`
	B        foreignG2 `json:"pi_b"`
	C        [3]string `json:"pi_c"`
}

type foreignG2 [3][2]string

// Export verifies a proof, and returns it for snarkjs. snarkjs knows no commitments: the key has those of the proof, of
// which Export has checked that its maker knows the wires. snarkjs does not check that again, nor that the public
// inputs follow from a statement.
func (k *Key) Export(public []fr.Element, p Proof) (Foreign, error) {
	if err := k.Verify(public, p); err != nil {
		return Foreign{}, err
	}
	q, err := p.parts()
	if err != nil {
		return Foreign{}, err
	}
	hashed, err := q.hashed()
	if err != nil {
		return Foreign{}, err
	}
	const protocol, curve = "groth16", "bn128"
	f := Foreign{Key: ForeignKey{Protocol: protocol, Curve: curve, Public: len(public),
		Alpha: foreign1(k.alpha), Beta: foreign2(k.beta), Gamma: foreign2(k.gamma), Delta: foreign2(k.delta),
		Inputs: [][3]string{foreign1(k.fixed(q, hashed))}},
		Proof: ForeignProof{Protocol: protocol, Curve: curve, A: foreign1(q.a), B: foreign2(q.b), C: foreign1(q.c)}}
	for _, point := range k.inputs[1 : 1+len(public)] {
		f.Key.Inputs = append(f.Key.Inputs, foreign1(point))
	}
	for _, x := range public {
		f.Public = append(f.Public, fmt.Sprint(x.BigInt(new(big.Int))))
	}
	return f, nil
}

// number is a coordinate in decimal digits.
func number(x fp.Element) string { return fmt.Sprint(x.BigInt(new(big.Int))) }

func foreign1(p bn254.G1Affine) [3]string { return [3]string{number(p.X), number(p.Y), "1"} }

func foreign2(p bn254.G2Affine) foreignG2 {
	return foreignG2{{number(p.X.A0), number(p.X.A1)}, {number(p.Y.A0), number(p.Y.A1)}, {"1", "0"}}
}
