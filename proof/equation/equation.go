// Package equation verifies proofs of Groth16 on BN254 (Groth 2016) about wires under commitments of Pedersen
// (Campanelli et al. 2022, eprint 2022/1072), in the form of gnark, over gnark-crypto alone. It knows public inputs,
// and not the statements that they follow from: packages above say these.
package equation

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc"
	bn254 "github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/hash_to_field"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/pedersen"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/points"
)

// Errors of proofs, of all statements.
var (
	ErrShape     = errors.New("proof: not a shape that can be proven")
	ErrStatement = errors.New("proof: not a statement")
	ErrKey       = errors.New("proof: not a verifying key")
	ErrForm      = errors.New("proof: not a proof")
	ErrInvalid   = errors.New("proof: the proof does not hold")
)

// Domains of hashes, as gnark has them: of a commitment to wires, and of the sum of the proofs that they are known.
const (
	commitmentDomain = "bsb22-commitment"
	knownDomain      = "G16-BSB22"
)

// Key is a verifying key.
type Key struct {
	alpha              bn254.G1Affine
	beta, gamma, delta bn254.G2Affine
	commitments        []pedersen.VerifyingKey
	inputs             []bn254.G1Affine // for one, for each public input, and for each commitment
}

// KeyBytes is the size of the points of a key with numbers of public inputs and of commitments.
func KeyBytes(public, commitments int) int {
	return (2+public+commitments)*points.G1Bytes + (3+2*commitments)*points.G2Bytes
}

// AppendKey returns the points of a key, not compressed: alpha of G1; beta, gamma and delta of G2; both points of G2 of
// each commitment; then those of G1 for one, for each public input and for each commitment.
func AppendKey(alpha bn254.G1Affine, beta, gamma, delta bn254.G2Affine, commitments []pedersen.VerifyingKey,
	inputs []bn254.G1Affine) []byte {
	data := points.AppendG2(points.AppendG1(nil, alpha), beta, gamma, delta)
	for _, c := range commitments {
		data = points.AppendG2(data, c.G, c.GSigmaNeg)
	}
	return points.AppendG1(data, inputs...)
}

// ReadKey reads the points of a key. It costs about 5 microseconds for each public input.
func ReadKey(data []byte, public, commitments int) (*Key, error) {
	if got, want := len(data), KeyBytes(public, commitments); got != want {
		return nil, fmt.Errorf("%d bytes of points, wanted %d", got, want)
	}
	k := &Key{commitments: make([]pedersen.VerifyingKey, commitments),
		inputs: make([]bn254.G1Affine, 1+public+commitments)}
	r := points.Reader{Data: data}
	r.G1(&k.alpha)
	for _, p := range []*bn254.G2Affine{&k.beta, &k.gamma, &k.delta} {
		r.G2(p)
	}
	for i := range k.commitments {
		r.G2(&k.commitments[i].G)
		r.G2(&k.commitments[i].GSigmaNeg)
	}
	for i := range k.inputs {
		r.G1(&k.inputs[i])
	}
	return k, r.End()
}

// Proof is a proof, as it travels.
type Proof struct {
	Commitments [][]byte // points of G1, compressed
	Points      []byte   // A, B and C of Groth16, and the proof that the wires are known, compressed
}

// MakePoints returns the points of a proof as a Proof holds them.
func MakePoints(a bn254.G1Affine, b bn254.G2Affine, c, known bn254.G1Affine) (data []byte) {
	x, y, z, w := a.Bytes(), b.Bytes(), c.Bytes(), known.Bytes()
	return append(append(append(append(data, x[:]...), y[:]...), z[:]...), w[:]...)
}

// parts are the points of a proof.
type parts struct {
	a, c, known bn254.G1Affine
	b           bn254.G2Affine
	commitments []bn254.G1Affine
}

func (p Proof) parts() (q parts, err error) {
	r := &points.Reader{Data: p.Points}
	r.ShortG1(&q.a)
	r.ShortG2(&q.b)
	r.ShortG1(&q.c)
	r.ShortG1(&q.known)
	err = r.End()
	q.commitments = make([]bn254.G1Affine, len(p.Commitments))
	for i, c := range p.Commitments {
		one := &points.Reader{Data: c, Err: err}
		one.ShortG1(&q.commitments[i])
		err = one.End()
	}
	if err != nil {
		return q, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return q, nil
}

// hashed are the public inputs that the commitments give.
func (q parts) hashed() (list []fr.Element, err error) {
	list = make([]fr.Element, len(q.commitments))
	for i, c := range q.commitments {
		h := hash_to_field.New([]byte(commitmentDomain))
		if _, err = h.Write(c.Marshal()); err != nil {
			return nil, err
		}
		list[i].SetBytes(h.Sum(nil))
	}
	return list, nil
}

// known checks that the maker of a proof knows wires under the commitments: one proof is for their sum, each times a
// power of a number that follows from all.
func (k *Key) known(q parts, hashed []fr.Element) error {
	var all []byte
	for _, h := range hashed {
		all = append(all, h.Marshal()...)
	}
	power, err := fr.Hash(all, []byte(knownDomain), 1)
	if err != nil {
		return err
	}
	err = pedersen.BatchVerifyMultiVk(k.commitments, q.commitments, []bn254.G1Affine{q.known}, power[0])
	if err != nil {
		return fmt.Errorf("%w: the wires under the commitments are not known: %w", ErrInvalid, err)
	}
	return nil
}

// fixed is the part of the sum over the public inputs that is the same for all proofs under the same commitments.
func (k *Key) fixed(q parts, hashed []fr.Element) bn254.G1Affine {
	sum := k.inputs[0]
	for i, c := range q.commitments {
		var one bn254.G1Affine
		one.ScalarMultiplication(&k.inputs[len(k.inputs)-len(hashed)+i], hashed[i].BigInt(new(big.Int)))
		sum.Add(&sum, &one)
		sum.Add(&sum, &c)
	}
	return sum
}

// Verify checks a proof with public inputs. The error wraps ErrInvalid if it does not hold, and ErrForm if it is none.
func (k *Key) Verify(public []fr.Element, p Proof) error {
	if n := len(k.inputs) - 1 - len(k.commitments); len(public) != n || len(p.Commitments) != len(k.commitments) {
		return fmt.Errorf("%w: %d public inputs and %d commitments, wanted %d and %d", ErrForm, len(public),
			len(p.Commitments), n, len(k.commitments))
	}
	q, err := p.parts()
	if err != nil {
		return err
	}
	hashed, err := q.hashed()
	if err != nil {
		return err
	}
	if err := k.known(q, hashed); err != nil {
		return err
	}
	var sum, negative bn254.G1Affine
	if _, err := sum.MultiExp(k.inputs[1:1+len(public)], public, ecc.MultiExpConfig{}); err != nil {
		return err
	}
	fixed := k.fixed(q, hashed)
	sum.Add(&sum, &fixed)
	negative.Neg(&q.a)
	ok, err := bn254.PairingCheck([]bn254.G1Affine{negative, k.alpha, sum, q.c},
		[]bn254.G2Affine{q.b, k.beta, k.gamma, k.delta})
	if err != nil {
		return err
	}
	if !ok {
		return ErrInvalid
	}
	return nil
}

// Decode reads a file that begins with a line of its own, of a stranger: canonical bytes of a value.
func Decode(data []byte, magic string, most int, into any) error {
	if len(data) > most {
		return fmt.Errorf("%d bytes, at most %d", len(data), most)
	}
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return fmt.Errorf("it does not begin with %q", magic)
	}
	return canon.Unmarshal(data[len(magic):], into)
}
