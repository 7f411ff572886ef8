// Package verifier reads keys and proofs of each kind from files of strangers, and verifies one with the other. The
// packages of the statements do the work; this one tells the kinds apart by the first line of a file.
package verifier

import (
	"bytes"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/inference"
)

// Limits of files, of the largest kind.
const (
	MaxProof = proof.MaxProof
	MaxKey   = proof.MaxKey
)

// Kind is what a proof is about.
type Kind string

// The kinds.
const (
	Adapter     Kind = "adapter"     // what an adapter adds to a layer of its base model
	Inference   Kind = "inference"   // what a network says about an image
	Aggregation Kind = "aggregation" // the sum of updates
)

// Claim is what a proof says of listed works. Fields that a kind does not have are zero.
type Claim struct {
	Kind        Kind
	Base        canon.Digest // description of the files of the base model
	Files       canon.Digest // of the files of the work
	Owner       string       // account for which it was made
	Part        string       // layer, or part
	Rank        uint32
	Tokens      uint32
	Commitments [][]byte
	Digest      canon.Digest
}

// Proof is a proof of one kind: the others are nil.
type Proof struct {
	Adapter     *proof.Proof
	Inference   *inference.Proof
	Aggregation *aggregation.Proof
}

// Decode reads a proof. It may not hold.
func Decode(data []byte) (p Proof, err error) {
	switch {
	case bytes.HasPrefix(data, []byte(inference.Magic)):
		one, err := inference.Decode(data)
		return Proof{Inference: &one}, err
	case bytes.HasPrefix(data, []byte(aggregation.Magic)):
		one, err := aggregation.Decode(data)
		return Proof{Aggregation: &one}, err
	}
	one, err := proof.Decode(data)
	return Proof{Adapter: &one}, err
}

// Claim is what the proof says.
func (p Proof) Claim() Claim {
	switch {
	case p.Inference != nil:
		s := p.Inference.Statement
		return Claim{Kind: Inference, Files: s.Model, Owner: s.Owner, Commitments: [][]byte{p.Inference.Commitment},
			Digest: p.Inference.Digest()}
	case p.Aggregation != nil:
		s := p.Aggregation.Statement
		return Claim{Kind: Aggregation, Files: s.Model, Owner: s.Owner, Part: s.Part,
			Commitments: p.Aggregation.Commitments, Digest: p.Aggregation.Digest()}
	}
	s := p.Adapter.Statement
	return Claim{Kind: Adapter, Base: s.Base, Files: s.Adapter, Owner: s.Owner, Part: s.Module, Rank: s.Shape.Rank,
		Tokens: uint32(len(s.Tokens)), Commitments: [][]byte{p.Adapter.Commitment}, Digest: p.Adapter.Digest()}
}

// Key is a verifying key of one kind.
type Key struct {
	Kind          Kind
	Subject       string // shape that it is for
	Digest        canon.Digest
	Contributions uint32 // to the setup, as the maker of the key claims
	Bytes         []byte

	adapter     *proof.Verifier
	inference   *inference.Verifier
	aggregation *aggregation.Verifier
}

// ReadKey reads a verifying key.
func ReadKey(data []byte) (k Key, err error) {
	k.Bytes = data
	switch {
	case bytes.HasPrefix(data, []byte(inference.KeyMagic)):
		if k.inference, err = inference.NewVerifier(data); err == nil {
			key := k.inference.Key()
			k.Kind, k.Subject, k.Contributions = Inference, key.Shape.String(), key.Contributions
			k.Digest = k.inference.Digest()
		}
	case bytes.HasPrefix(data, []byte(aggregation.KeyMagic)):
		if k.aggregation, err = aggregation.NewVerifier(data); err == nil {
			key := k.aggregation.Key()
			k.Kind, k.Subject, k.Contributions = Aggregation, key.Shape.String(), key.Contributions
			k.Digest = k.aggregation.Digest()
		}
	default:
		if k.adapter, err = proof.NewVerifier(data); err == nil {
			key := k.adapter.Key()
			k.Kind, k.Subject, k.Contributions = Adapter, key.Shape.String(), key.Contributions
			k.Digest = k.adapter.Digest()
		}
	}
	return k, err
}

// Shape is that of adapters; of a key of another kind it is zero.
func (k Key) Shape() (s proof.Shape) {
	if k.adapter != nil {
		s = k.adapter.Key().Shape
	}
	return s
}

// Verify checks a proof. The error wraps equation.ErrInvalid if it does not hold.
func (k Key) Verify(p Proof) error {
	switch {
	case k.adapter != nil && p.Adapter != nil:
		return k.adapter.Verify(*p.Adapter)
	case k.inference != nil && p.Inference != nil:
		return k.inference.Verify(*p.Inference)
	case k.aggregation != nil && p.Aggregation != nil:
		return k.aggregation.Verify(*p.Aggregation)
	}
	return k.other(p)
}

func (k Key) other(p Proof) error {
	return fmt.Errorf("%w: it is about an %s, and the key for an %s", equation.ErrInvalid, p.Claim().Kind, k.Kind)
}

// Export verifies a proof, and returns it for snarkjs: see equation.Key.Export.
func (k Key) Export(p Proof) (equation.Foreign, error) {
	switch {
	case k.adapter != nil && p.Adapter != nil:
		return k.adapter.Export(*p.Adapter)
	case k.inference != nil && p.Inference != nil:
		return k.inference.Export(*p.Inference)
	case k.aggregation != nil && p.Aggregation != nil:
		return k.aggregation.Export(*p.Aggregation)
	}
	return equation.Foreign{}, k.other(p)
}

// Parts are the commitments of a proof and its points, in bytes.
func (p Proof) Parts() int {
	n := 0
	for _, c := range p.Claim().Commitments {
		n += len(c)
	}
	switch {
	case p.Inference != nil:
		return n + len(p.Inference.Points)
	case p.Aggregation != nil:
		return n + len(p.Aggregation.Points)
	}
	return n + len(p.Adapter.Points)
}
