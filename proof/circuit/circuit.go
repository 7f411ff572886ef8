// Package circuit makes the proofs that packages proof and opening verify: the circuits of an adapter and of an
// opening, and their provers. The proofs and their algebra are gnark's.
package circuit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/big"
	"slices"
	"sync"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark/backend"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/constraint/solver"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/equation"
)

// adapter is the circuit: see proof.Public. It has Rank*(In+Out) constraints, and a few.
type adapter struct {
	Point  frontend.Variable   `gnark:",public"`
	Sum    frontend.Variable   `gnark:",public"`
	Inputs []frontend.Variable `gnark:",public"`

	A []frontend.Variable // [rank, in]
	B []frontend.Variable // [out, rank]
}

// Define implements frontend.Circuit.
func (c *adapter) Define(api frontend.API) error {
	if err := committed(api, slices.Concat(c.A, c.B)); err != nil {
		return err
	}
	in := len(c.Inputs)
	rank := len(c.A) / in
	var sum frontend.Variable = 0
	for k := range rank {
		var inner frontend.Variable = 0
		terms := make([]frontend.Variable, in)
		for j, x := range c.Inputs {
			terms[j] = api.Mul(c.A[k*in+j], x)
		}
		inner = api.Add(inner, 0, terms...)
		var outer frontend.Variable = 0
		for i := len(c.B)/rank - 1; i >= 0; i-- {
			outer = api.Add(api.Mul(outer, c.Point), c.B[i*rank+k])
		}
		sum = api.Add(sum, api.Mul(inner, outer))
	}
	api.AssertIsEqual(sum, c.Sum)
	return nil
}

var silent sync.Once

// Compile returns the constraints of a shape.
func Compile(s proof.Shape) (*cs.R1CS, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	silent.Do(logger.Disable) // gnark writes to stdout
	c := &adapter{Inputs: make([]frontend.Variable, s.In), A: make([]frontend.Variable, s.Rank*s.In),
		B: make([]frontend.Variable, s.Rank*s.Out)}
	made, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, c,
		frontend.WithCapacity(s.Weights()+64))
	if err != nil {
		return nil, err
	}
	return made.(*cs.R1CS), nil
}

func keyPoints(vk *groth16.VerifyingKey) []byte {
	return equation.AppendKey(vk.G1.Alpha, vk.G2.Beta, vk.G2.Gamma, vk.G2.Delta, vk.CommitmentKeys, vk.G1.K)
}

// VerifyingKey is the key of gnark as package proof has it.
func VerifyingKey(k proof.Key, vk *groth16.VerifyingKey) ([]byte, error) {
	if len(vk.CommitmentKeys) != 1 {
		return nil, fmt.Errorf("circuit: a key with %d commitments, wanted 1", len(vk.CommitmentKeys))
	}
	k.Points = keyPoints(vk)
	data := k.Encode()
	_, err := proof.NewVerifier(data)
	return data, err
}

// Secret hides the weights of an adapter in a commitment. A party with the weights and the secret makes the commitment
// again.
type Secret [32]byte

// mask is the random number of the commitment to the weights of a layer. Other weights have another.
func (s Secret) mask(module string, w proof.Weights) (fr.Element, error) {
	return maskOf(canon.Sum("starling/proof/mask/1", s[:], []byte(module), bytesOf(w.A.Values), bytesOf(w.B.Values)))
}

func maskOf(seed canon.Digest) (fr.Element, error) {
	m, err := fr.Hash(seed[:], []byte("starling-mask"), 1)
	if err != nil {
		return fr.Element{}, err
	}
	return m[0], nil
}

// Prover makes the proofs of one key.
type Prover struct {
	shape       proof.Shape
	key         canon.Digest // of the verifying key
	constraints *cs.R1CS
	proving     *groth16.ProvingKey
}

// NewProver returns a prover with both keys of a setup.
func NewProver(v *proof.Verifier, pk *groth16.ProvingKey) (*Prover, error) {
	p := &Prover{shape: v.Key().Shape, key: v.Digest(), proving: pk}
	var err error
	if p.constraints, err = Compile(p.shape); err != nil {
		return nil, err
	}
	if len(pk.CommitmentKeys) != 1 {
		return nil, fmt.Errorf("%w: the proving key is for %d commitments, wanted 1", proof.ErrKey, len(pk.CommitmentKeys))
	}
	return p, nil
}

// Commit returns the commitment to the weights of a layer.
func (p *Prover) Commit(w proof.Weights, module string, secret Secret) ([]byte, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	mask, err := secret.mask(module, w)
	if err != nil {
		return nil, err
	}
	values := make([]fr.Element, 0, w.Shape.Weights()+1)
	for _, list := range [][]int16{w.A.Values, w.B.Values} {
		for _, v := range list {
			var x fr.Element
			x.SetInt64(int64(v))
			values = append(values, x)
		}
	}
	return commit(p.proving, 0, append(values, mask))
}

// randomize is the hint by which gnark draws the mask of a commitment. The prover gives its own, so that all proofs
// about an adapter have one commitment.
const randomize = "github.com/consensys/gnark/internal/hints.Randomize"

// Prove makes a proof of a statement that proof.Statement.Apply completed with the weights.
func (p *Prover) Prove(s proof.Statement, w proof.Weights, secret Secret) (proof.Proof, error) {
	made := proof.Proof{Statement: s}
	var err error
	if made.Commitment, err = p.Commit(w, s.Module, secret); err != nil {
		return made, err
	}
	public, err := proof.Fold(p.key, s, made.Commitment)
	if err != nil {
		return made, err
	}
	mask, err := secret.mask(s.Module, w)
	if err != nil {
		return made, err
	}
	assigned := &adapter{Point: public.Point, Sum: public.Sum, Inputs: variables(public.Inputs),
		A: integers(w.A.Values), B: integers(w.B.Values)}
	witness, err := frontend.NewWitness(assigned, ecc.BN254.ScalarField())
	if err != nil {
		return made, err
	}
	g, err := groth16.Prove(p.constraints, p.proving, witness, backend.WithSolverOptions(maskedBy(mask)))
	if err != nil {
		return made, err
	}
	if b := g.Commitments[0].Bytes(); string(b[:]) != string(made.Commitment) {
		return made, fmt.Errorf("circuit: the proof commits to other weights")
	}
	made.Points = equation.MakePoints(g.Ar, g.Bs, g.Krs, g.CommitmentPok)
	return made, nil
}

func maskedBy(mask fr.Element) solver.Option {
	h := fnv.New32a()
	h.Write([]byte(randomize))
	return solver.OverrideHint(solver.HintID(h.Sum32()), func(_ *big.Int, _, out []*big.Int) error {
		mask.BigInt(out[0])
		return nil
	})
}

func bytesOf[T int16 | int32 | int64](list []T) (data []byte) {
	data, err := binary.Append(nil, binary.LittleEndian, list)
	if err != nil {
		panic(err) // numbers of one size
	}
	return data
}

func variables(list []fr.Element) []frontend.Variable {
	out := make([]frontend.Variable, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

func integers[T int16 | int32 | int64](list []T) []frontend.Variable {
	out := make([]frontend.Variable, len(list))
	for i, v := range list {
		out[i] = int64(v)
	}
	return out
}

// Setup makes keys with randomness of this process alone, and returns the number of constraints with them: the process
// could forge proofs. The keys of package ceremony have more contributors.
func Setup(s proof.Shape) (verifying []byte, proving *groth16.ProvingKey, constraints int, err error) {
	r, err := Compile(s)
	if err != nil {
		return nil, nil, 0, err
	}
	var vk groth16.VerifyingKey
	proving = new(groth16.ProvingKey)
	if err := groth16.Setup(r, proving, &vk); err != nil {
		return nil, nil, 0, err
	}
	verifying, err = VerifyingKey(proof.Key{Shape: s, Contributions: 1}, &vk)
	return verifying, proving, r.GetNbConstraints(), err
}
