// Package prooftest makes proofs about a tiny adapter, for tests. No program imports it.
package prooftest

import (
	"math"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/circuit"
)

// New is a verifying key of a setup of one party, and a function that makes proofs with it: about files with these
// digests, for an account, on a text of a number of tokens.
func New(t testing.TB) (key []byte, prove func(base, adapter canon.Digest, owner string, tokens uint32) []byte) {
	t.Helper()
	shape := proof.Shape{Rank: 1, In: 3, Out: 2}
	key, pk, _, err := circuit.Setup(shape)
	if err != nil {
		t.Fatal(err)
	}
	v, err := proof.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	p, err := circuit.NewProver(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	w := proof.Weights{Shape: shape, A: proof.Fixed{Values: []int16{1, -2, 3}}, B: proof.Fixed{Values: []int16{-4, 5}}}
	return key, func(base, adapter canon.Digest, owner string, tokens uint32) []byte {
		t.Helper()
		s := proof.Statement{Base: base, Adapter: adapter, Module: "layer", Factor: math.Float64bits(1),
			Tokens: make([]uint32, tokens), Owner: owner}
		if err := s.Apply(w, proof.Fixed{Values: make([]int16, 3*tokens)}); err != nil {
			t.Fatal(err)
		}
		made, err := p.Prove(s, w, circuit.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		return made.Encode()
	}
}
