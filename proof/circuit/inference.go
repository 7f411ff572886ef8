package circuit

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark/backend"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/inference"
)

// network is the circuit of inference.Network.Run. It has a constraint for each weight, and 49 for each hidden value.
type network struct {
	Binds   frontend.Variable   `gnark:",public"`
	Inputs  []frontend.Variable `gnark:",public"`
	Outputs []frontend.Variable `gnark:",public"`

	Layers []dense
}

// dense is a layer.
type dense struct {
	Weights []frontend.Variable // [out, in]
	Added   []frontend.Variable // [out]
}

// Define implements frontend.Circuit.
func (c *network) Define(api frontend.API) error {
	var all []frontend.Variable
	for _, l := range c.Layers {
		all = append(append(all, l.Weights...), l.Added...)
	}
	if err := committed(api, all); err != nil {
		return err
	}
	api.Mul(c.Binds, c.Binds) // in no constraint it could be exchanged
	x := c.Inputs
	for i, l := range c.Layers {
		y := make([]frontend.Variable, len(l.Added))
		for row := range y {
			terms := make([]frontend.Variable, len(x))
			for j, w := range l.Weights[row*len(x) : (row+1)*len(x)] {
				terms[j] = api.Mul(w, x[j])
			}
			y[row] = api.Add(l.Added[row], terms[0], terms[1:]...)
			if i < len(c.Layers)-1 {
				y[row] = hidden(api, y[row])
			}
		}
		x = y
	}
	for i, y := range x {
		api.AssertIsEqual(y, c.Outputs[i])
	}
	return nil
}

// hidden is the value of a hidden layer that follows from a sum. No proof is made of a sum beyond inference.Bound.
func hidden(api frontend.API, sum frontend.Variable) frontend.Variable {
	const top = inference.Top // of the bits of a sum: it is set if the sum is not negative
	bits := api.ToBinary(api.Add(sum, 1<<top+1<<(inference.Fraction-1)), top+1)
	return api.Mul(bits[top], api.FromBinary(bits[inference.Fraction:top]...))
}

// committed puts wires under a commitment.
func committed(api frontend.API, wires []frontend.Variable) error {
	committer, ok := api.(frontend.Committer)
	if !ok {
		return fmt.Errorf("circuit: %T commits to nothing", api)
	}
	commitment, err := committer.Commit(wires...)
	if err != nil {
		return err
	}
	api.AssertIsDifferent(commitment, 0) // it must be in a constraint
	return nil
}

// CompileInference returns the constraints of networks of a shape.
func CompileInference(s inference.Shape) (*cs.R1CS, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	silent.Do(logger.Disable)
	c := &network{Inputs: make([]frontend.Variable, s.Inputs()), Outputs: make([]frontend.Variable, s.Classes())}
	for i, out := range s.Widths[1:] {
		c.Layers = append(c.Layers, dense{make([]frontend.Variable, s.Widths[i]*out), make([]frontend.Variable, out)})
	}
	made, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, c, frontend.WithCapacity(s.Weights()+64))
	if err != nil {
		return nil, err
	}
	return made.(*cs.R1CS), nil
}

// InferenceKey is the key of gnark as package inference has it.
func InferenceKey(k inference.Key, vk *groth16.VerifyingKey) ([]byte, error) {
	k.Points = keyPoints(vk)
	data := k.Encode()
	_, err := inference.NewVerifier(data)
	return data, err
}

// Inferrer makes the proofs about networks of one key.
type Inferrer struct {
	verifier    *inference.Verifier
	constraints *cs.R1CS
	proving     *groth16.ProvingKey
}

// NewInferrer returns a prover with both keys of a setup.
func NewInferrer(v *inference.Verifier, pk *groth16.ProvingKey) (*Inferrer, error) {
	r, err := CompileInference(v.Key().Shape)
	if err == nil && len(pk.CommitmentKeys) != 1 {
		err = fmt.Errorf("%w: the proving key is for %d commitments, wanted 1", equation.ErrKey, len(pk.CommitmentKeys))
	}
	return &Inferrer{v, r, pk}, err
}

// networkMask is the random number of the commitment to a network. Other weights have another.
func networkMask(s Secret, n inference.Network) (fr.Element, error) {
	parts := [][]byte{s[:]}
	for _, l := range n.Layers {
		parts = append(parts, bytesOf(l.Weights), bytesOf(l.Added))
	}
	return maskOf(canon.Sum("starling/inference/mask/1", parts...))
}

// Commit returns the commitment to the integers of a network.
func (p *Inferrer) Commit(n inference.Network, secret Secret) ([]byte, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	mask, err := networkMask(secret, n)
	if err != nil {
		return nil, err
	}
	var values []fr.Element
	var x fr.Element
	for _, l := range n.Layers {
		for _, w := range l.Weights {
			values = append(values, *x.SetInt64(int64(w)))
		}
		for _, b := range l.Added {
			values = append(values, *x.SetInt64(b))
		}
	}
	return commit(p.proving, 0, append(values, mask))
}

// commit is the commitment i of a key to values and a mask.
func commit(pk *groth16.ProvingKey, i int, values []fr.Element) ([]byte, error) {
	point, err := pk.CommitmentKeys[i].Commit(values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", equation.ErrKey, err)
	}
	b := point.Bytes()
	return b[:], nil
}

// Prove makes a proof of a statement that inference.Statement.Apply completed with the network.
func (p *Inferrer) Prove(s inference.Statement, n inference.Network, secret Secret) (made inference.Proof, err error) {
	made.Statement = s
	if made.Commitment, err = p.Commit(n, secret); err != nil {
		return made, err
	}
	public, err := inference.Public(p.verifier.Digest(), s, made.Commitment)
	if err != nil {
		return made, err
	}
	mask, err := networkMask(secret, n)
	if err != nil {
		return made, err
	}
	inputs := 1 + s.Shape.Inputs()
	assigned := &network{Binds: public[0], Inputs: variables(public[1:inputs]), Outputs: variables(public[inputs:])}
	for _, l := range n.Layers {
		assigned.Layers = append(assigned.Layers, dense{integers(l.Weights), integers(l.Added)})
	}
	witness, err := frontend.NewWitness(assigned, ecc.BN254.ScalarField())
	if err != nil {
		return made, err
	}
	g, err := groth16.Prove(p.constraints, p.proving, witness, backend.WithSolverOptions(maskedBy(mask)))
	if err != nil {
		return made, err
	}
	made.Points = equation.MakePoints(g.Ar, g.Bs, g.Krs, g.CommitmentPok)
	return made, p.verifier.Verify(made)
}

// SetupInference makes keys with randomness of this process alone, as Setup does.
func SetupInference(s inference.Shape) (verifying []byte, proving *groth16.ProvingKey, constraints int, err error) {
	r, err := CompileInference(s)
	if err != nil {
		return nil, nil, 0, err
	}
	var vk groth16.VerifyingKey
	proving = new(groth16.ProvingKey)
	if err := groth16.Setup(r, proving, &vk); err != nil {
		return nil, nil, 0, err
	}
	verifying, err = InferenceKey(inference.Key{Shape: s, Contributions: 1}, &vk)
	return verifying, proving, r.GetNbConstraints(), err
}
