package prooftest

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/inference"
)

// Inference is a verifying key of a setup of one party for tiny networks, and a function that makes proofs with it:
// about a network with these files, for an account.
func Inference(t testing.TB) (key []byte, prove func(files canon.Digest, owner string) []byte) {
	t.Helper()
	shape := inference.Shape{Widths: []uint32{2, 2}}
	key, pk, _, err := circuit.SetupInference(shape)
	if err != nil {
		t.Fatal(err)
	}
	v, err := inference.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	p, err := circuit.NewInferrer(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	n := inference.Network{Shape: shape, Layers: []inference.Layer{{Weights: []int32{1, -2, 3, 4}, Added: []int64{5, 6}}}}
	return key, func(files canon.Digest, owner string) []byte {
		t.Helper()
		s := inference.Statement{Model: files, Owner: owner}
		if err := s.Apply(n, []byte{1, 2}); err != nil {
			t.Fatal(err)
		}
		made, err := p.Prove(s, n, circuit.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		return made.Encode()
	}
}

// Aggregation is a verifying key of a setup of one party for tiny sums, and a function that makes proofs with it: about
// a model with these files, for an account.
func Aggregation(t testing.TB) (key []byte, prove func(files canon.Digest, owner string) []byte) {
	t.Helper()
	key, pk, _, err := circuit.SetupAggregation(aggregation.Shape{Updates: 2, Length: 2})
	if err != nil {
		t.Fatal(err)
	}
	v, err := aggregation.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := circuit.NewAggregator(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	updates := []circuit.Committed{{Update: []int32{1, 2}}, {Update: []int32{-3, 4}}}
	return key, func(files canon.Digest, owner string) []byte {
		t.Helper()
		s := aggregation.Statement{Model: files, Part: "round 1", Owner: owner}
		if err := s.Apply([][]int32{updates[0].Update, updates[1].Update}); err != nil {
			t.Fatal(err)
		}
		made, err := a.Prove(s, updates)
		if err != nil {
			t.Fatal(err)
		}
		return made.Encode()
	}
}
