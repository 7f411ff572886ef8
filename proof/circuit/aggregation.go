package circuit

import (
	"fmt"

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
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/equation"
)

// summed is the circuit of a sum: see aggregation.Public. It has a constraint for each element of each update. An owner
// chooses the mask of its own commitment; that of gnark is zero.
type summed struct {
	Point frontend.Variable `gnark:",public"`
	Sum   frontend.Variable `gnark:",public"`

	Updates [][]frontend.Variable
	Masks   []frontend.Variable
}

// Define implements frontend.Circuit.
func (c *summed) Define(api frontend.API) error {
	var sum frontend.Variable = 0
	for i, u := range c.Updates {
		if err := committed(api, append(u[:len(u):len(u)], c.Masks[i])); err != nil {
			return err
		}
		api.Mul(c.Masks[i], c.Masks[i]) // in no constraint it would have no part in the commitment
		var folded frontend.Variable = 0
		for j := len(u) - 1; j >= 0; j-- {
			folded = api.Add(api.Mul(folded, c.Point), u[j])
		}
		sum = api.Add(sum, folded)
	}
	api.AssertIsEqual(sum, c.Sum)
	return nil
}

// CompileAggregation returns the constraints of sums of a shape.
func CompileAggregation(s aggregation.Shape) (*cs.R1CS, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	silent.Do(logger.Disable)
	c := &summed{Masks: make([]frontend.Variable, s.Updates)}
	for range s.Updates {
		c.Updates = append(c.Updates, make([]frontend.Variable, s.Length))
	}
	made, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, c,
		frontend.WithCapacity(int(s.Updates*s.Length)+64))
	if err != nil {
		return nil, err
	}
	return made.(*cs.R1CS), nil
}

// AggregationKey is the key of gnark as package aggregation has it.
func AggregationKey(k aggregation.Key, vk *groth16.VerifyingKey) ([]byte, error) {
	k.Points = keyPoints(vk)
	data := k.Encode()
	_, err := aggregation.NewVerifier(data)
	return data, err
}

// Aggregator makes the proofs of one key about sums, and the commitments of owners.
type Aggregator struct {
	verifier *aggregation.Verifier
	proving  *groth16.ProvingKey
}

// NewAggregator returns a prover with both keys of a setup.
func NewAggregator(v *aggregation.Verifier, pk *groth16.ProvingKey) (*Aggregator, error) {
	if n := int(v.Key().Shape.Updates); len(pk.CommitmentKeys) != n {
		return nil, fmt.Errorf("%w: the proving key is for %d commitments, wanted %d", equation.ErrKey,
			len(pk.CommitmentKeys), n)
	}
	return &Aggregator{v, pk}, nil
}

// Committed is an update with the secret of its owner.
type Committed struct {
	Update []int32
	Secret Secret
}

// mask is the random number of the commitment to an update. Other updates have another.
func (c Committed) mask(place int) (fr.Element, error) {
	return maskOf(canon.Sum("starling/aggregation/mask/1", c.Secret[:], bytesOf([]int64{int64(place)}), bytesOf(c.Update)))
}

// Commit returns the commitment to an update at a place of the sum, from 0.
func (a *Aggregator) Commit(place int, c Committed) ([]byte, error) {
	if s := a.verifier.Key().Shape; place < 0 || place >= int(s.Updates) || len(c.Update) != int(s.Length) {
		return nil, fmt.Errorf("%w: update %d of %d elements, and the keys are for %s", equation.ErrStatement, place+1,
			len(c.Update), s)
	}
	mask, err := c.mask(place)
	if err != nil {
		return nil, err
	}
	values := make([]fr.Element, len(c.Update), len(c.Update)+2)
	for i, x := range c.Update {
		values[i].SetInt64(int64(x))
	}
	return commit(a.proving, place, append(values, mask, fr.Element{}))
}

// Prove makes a proof of a statement that aggregation.Statement.Apply completed with the updates.
func (a *Aggregator) Prove(s aggregation.Statement, updates []Committed) (made aggregation.Proof, err error) {
	made.Statement = s
	if s.Shape != a.verifier.Key().Shape || len(updates) != int(s.Shape.Updates) {
		return made, fmt.Errorf("%w: %s from %d updates, and the keys are for %s", equation.ErrStatement, s.Shape,
			len(updates), a.verifier.Key().Shape)
	}
	assigned := &summed{}
	for i, c := range updates {
		one, err := a.Commit(i, c)
		if err != nil {
			return made, err
		}
		mask, err := c.mask(i)
		if err != nil {
			return made, err
		}
		made.Commitments = append(made.Commitments, one)
		assigned.Updates, assigned.Masks = append(assigned.Updates, integers(c.Update)), append(assigned.Masks, mask)
	}
	public, err := aggregation.Public(a.verifier.Digest(), s, made.Commitments)
	if err != nil {
		return made, err
	}
	assigned.Point, assigned.Sum = public[0], public[1]
	constraints, err := CompileAggregation(s.Shape)
	if err != nil {
		return made, err
	}
	witness, err := frontend.NewWitness(assigned, ecc.BN254.ScalarField())
	if err != nil {
		return made, err
	}
	// one task: gnark hashes the commitments with one state
	g, err := groth16.Prove(constraints, a.proving, witness,
		backend.WithSolverOptions(maskedBy(fr.Element{}), solver.WithNbTasks(1)))
	if err != nil {
		return made, err
	}
	made.Points = equation.MakePoints(g.Ar, g.Bs, g.Krs, g.CommitmentPok)
	return made, a.verifier.Verify(made)
}

// SetupAggregation makes keys with randomness of this process alone, as Setup does.
func SetupAggregation(s aggregation.Shape) (verifying []byte, proving *groth16.ProvingKey, constraints int, err error) {
	r, err := CompileAggregation(s)
	if err != nil {
		return nil, nil, 0, err
	}
	var vk groth16.VerifyingKey
	proving = new(groth16.ProvingKey)
	if err := groth16.Setup(r, proving, &vk); err != nil {
		return nil, nil, 0, err
	}
	verifying, err = AggregationKey(aggregation.Key{Shape: s, Contributions: 1}, &vk)
	return verifying, proving, r.GetNbConstraints(), err
}
