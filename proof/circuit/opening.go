package circuit

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
	"github.com/consensys/gnark/std/permutation/poseidon2"

	"github.com/starling-network/starling/proof/opening"
)

// opened is the circuit of an opening: digest and keys follow from one key. It has 187 constraints for each leaf.
type opened struct {
	Digest frontend.Variable   `gnark:",public"`
	Leaves []frontend.Variable `gnark:",public"`
	Keys   []frontend.Variable `gnark:",public"`

	Key frontend.Variable
}

// Define implements frontend.Circuit.
func (c *opened) Define(api frontend.API) error {
	p, err := poseidon2.NewPoseidon2(api)
	if err != nil {
		return err
	}
	api.AssertIsEqual(c.Digest, p.Compress(c.Key, opening.Domain()))
	for i, leaf := range c.Leaves {
		api.AssertIsEqual(c.Keys[i], p.Compress(c.Key, leaf))
	}
	return nil
}

// CompileOpening returns the constraints of openings of a number of leaves.
func CompileOpening(leaves int) (*cs.R1CS, error) {
	if err := opening.CheckLeaves(leaves); err != nil {
		return nil, err
	}
	silent.Do(logger.Disable)
	c := &opened{Leaves: make([]frontend.Variable, leaves), Keys: make([]frontend.Variable, leaves)}
	made, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, c)
	if err != nil {
		return nil, err
	}
	return made.(*cs.R1CS), nil
}

// OpeningKey is the key of gnark as package opening has it.
func OpeningKey(k opening.VerifyingKey, vk *groth16.VerifyingKey) ([]byte, error) {
	data := opening.MakeKey(k, vk.G1.Alpha, vk.G2.Beta, vk.G2.Gamma, vk.G2.Delta, vk.G1.K)
	_, err := opening.NewVerifier(data)
	return data, err
}

// Opener makes openings with the keys of one setup.
type Opener struct {
	verifier    *opening.Verifier
	constraints *cs.R1CS
	proving     *groth16.ProvingKey
}

// NewOpener returns an opener with both keys of a setup.
func NewOpener(v *opening.Verifier, pk *groth16.ProvingKey) (*Opener, error) {
	r, err := CompileOpening(v.Leaves())
	return &Opener{v, r, pk}, err
}

// Leaves is the number of leaves of an opening.
func (o *Opener) Leaves() int { return o.verifier.Leaves() }

// Open opens leaves of a file: as many as the setup is for. A leaf may be there twice.
func (o *Opener) Open(key opening.Key, leaves []uint64) (made opening.Opening, err error) {
	if len(leaves) != o.Leaves() {
		return made, fmt.Errorf("%w: %d, and the keys are for %d", opening.ErrLeaves, len(leaves), o.Leaves())
	}
	digest := key.Digest()
	made.Verifying = o.verifier.Digest()
	assigned := &opened{Digest: digest[:], Key: key.Bytes()}
	for _, leaf := range leaves {
		k := key.Leaf(leaf)
		made.Keys = append(made.Keys, k[:]...)
		assigned.Leaves, assigned.Keys = append(assigned.Leaves, leaf), append(assigned.Keys, k[:])
	}
	witness, err := frontend.NewWitness(assigned, ecc.BN254.ScalarField())
	if err != nil {
		return made, err
	}
	g, err := groth16.Prove(o.constraints, o.proving, witness)
	if err != nil {
		return made, err
	}
	made.Points = opening.MakePoints(g.Ar, g.Bs, g.Krs)
	return made, o.verifier.Verify(digest, leaves, made)
}

// SetupOpening makes keys with randomness of this process alone, as Setup does.
func SetupOpening(leaves int) (verifying []byte, proving *groth16.ProvingKey, err error) {
	r, err := CompileOpening(leaves)
	if err != nil {
		return nil, nil, err
	}
	var vk groth16.VerifyingKey
	proving = new(groth16.ProvingKey)
	if err := groth16.Setup(r, proving, &vk); err != nil {
		return nil, nil, err
	}
	verifying, err = OpeningKey(opening.VerifyingKey{Leaves: uint32(leaves), Contributions: 1}, &vk)
	return verifying, proving, err
}
