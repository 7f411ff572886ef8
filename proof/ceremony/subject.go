package ceremony

import (
	"fmt"
	"os"

	"github.com/consensys/gnark-crypto/ecc"
	groth16 "github.com/consensys/gnark/backend/groth16/bn254"
	cs "github.com/consensys/gnark/constraint/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/inference"
	"github.com/starling-network/starling/proof/opening"
)

// Shape of the adapters that the keys are for.
func (s *Setup) Shape() proof.Shape {
	return proof.Shape{Rank: uint32(s.Rank), In: uint32(s.In), Out: uint32(s.Out)}
}

// inference and aggregation are the shapes of networks and of sums.
func (s *Setup) inference() inference.Shape { return inference.Shape{Widths: s.Widths} }

func (s *Setup) aggregation() aggregation.Shape {
	return aggregation.Shape{Updates: uint32(s.Updates), Length: uint32(s.Length)}
}

// Subject says what the keys are for.
func (s *Setup) Subject() string {
	switch {
	case s.Leaves == 1:
		return "openings of a leaf"
	case s.Leaves > 0:
		return fmt.Sprintf("openings of %d leaves", s.Leaves)
	case len(s.Widths) > 0:
		return s.inference().String()
	case s.Updates > 0:
		return s.aggregation().String()
	}
	return s.Shape().String()
}

// validate checks what the keys are for: one of the shapes, and no other.
func (s *Setup) validate() error {
	shapes := 0
	for _, has := range []bool{s.Shape() != proof.Shape{}, s.Leaves != 0, len(s.Widths) > 0,
		s.Updates != 0 || s.Length != 0} {
		if has {
			shapes++
		}
	}
	switch {
	case shapes > 1:
		return fmt.Errorf("%w: it is for more than one circuit", ErrSetup)
	case s.Leaves != 0:
		return opening.CheckLeaves(s.Leaves)
	case len(s.Widths) > 0:
		return s.inference().Validate()
	case s.Updates != 0 || s.Length != 0:
		return s.aggregation().Validate()
	}
	return s.Shape().Validate()
}

// constraints compiles the circuit, and returns the size of the first phase.
func (s *Setup) constraints() (r *cs.R1CS, size uint64, err error) {
	switch {
	case s.Leaves > 0:
		r, err = circuit.CompileOpening(s.Leaves)
	case len(s.Widths) > 0:
		r, err = circuit.CompileInference(s.inference())
	case s.Updates > 0:
		r, err = circuit.CompileAggregation(s.aggregation())
	default:
		r, err = circuit.Compile(s.Shape())
	}
	if err != nil {
		return nil, 0, err
	}
	return r, ecc.NextPowerOfTwo(uint64(r.GetNbConstraints())), nil
}

// verifyingKey is the verifying key of gnark as its file has it.
func (s *Setup) verifyingKey(vk *groth16.VerifyingKey) ([]byte, error) {
	n := uint32(s.Contributions())
	switch {
	case s.Leaves > 0:
		return circuit.OpeningKey(opening.VerifyingKey{Leaves: uint32(s.Leaves), Contributions: n,
			Transcript: s.Transcript()}, vk)
	case len(s.Widths) > 0:
		return circuit.InferenceKey(inference.Key{Shape: s.inference(), Contributions: n, Transcript: s.Transcript()}, vk)
	case s.Updates > 0:
		return circuit.AggregationKey(aggregation.Key{Shape: s.aggregation(), Contributions: n,
			Transcript: s.Transcript()}, vk)
	}
	return circuit.VerifyingKey(proof.Key{Shape: s.Shape(), Contributions: n, Transcript: s.Transcript()}, vk)
}

// keyDigest names a verifying key.
func (s *Setup) keyDigest(key []byte) canon.Digest {
	switch {
	case s.Leaves > 0:
		return opening.KeyDigest(key)
	case len(s.Widths) > 0:
		return inference.KeyDigest(key)
	case s.Updates > 0:
		return aggregation.KeyDigest(key)
	}
	return proof.KeyDigest(key)
}

// Key names the verifying key of the folder, whose proving key is there, too.
func (s *Setup) Key() (canon.Digest, error) {
	if _, err := os.Stat(s.file(FileProving)); err != nil {
		return canon.Digest{}, err
	}
	data, err := readLimited(s.file(FileVerifying), proof.MaxKey)
	return s.keyDigest(data), err
}
