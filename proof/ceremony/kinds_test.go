package ceremony

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/inference"
	"github.com/starling-network/starling/proof/verifier"
)

// finished plays a setup to its end, with a contribution to each phase.
func finished(t *testing.T, dir string) verifier.Key {
	t.Helper()
	for _, beacon := range []string{"first", "second"} {
		if _, err := opened(t, dir).Contribute(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := opened(t, dir).Seal(t.Context(), beacon); err != nil {
			t.Fatal(err)
		}
	}
	d, err := opened(t, dir).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k, err := VerifyingOf(filepath.Join(dir, FileVerifying))
	if err != nil || k.Digest != d || k.Contributions != 1 || k.Subject != opened(t, dir).Subject() {
		t.Fatalf("%+v, wanted %s: %v", k, d, err)
	}
	return k
}

// Setups for networks and for sums make keys that prove and verify, each the proofs of its kind and shape alone.
func TestKeysOfKinds(t *testing.T) {
	networks, sums := t.TempDir(), t.TempDir()
	if _, err := StartInference(networks, inference.Shape{Widths: []uint32{3, 2, 2}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := StartAggregation(sums, aggregation.Shape{Updates: 2, Length: 3}, nil); err != nil {
		t.Fatal(err)
	}
	ofNetworks, ofSums := finished(t, networks), finished(t, sums)

	v, pk, err := InferenceKeys(networks)
	if err != nil {
		t.Fatal(err)
	}
	p, err := circuit.NewInferrer(v, pk)
	if err != nil {
		t.Fatal(err)
	}
	n, err := inference.Quantise(v.Key().Shape, []inference.Floats{{Weights: []float32{1, -2, 3, 4, 5, -6},
		Added: []float32{7, 8}}, {Weights: []float32{1, 2, 3, 4}, Added: []float32{0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	said := inference.Statement{Model: canon.Sum("model")}
	if err := said.Apply(n, []byte{1, 200, 3}); err != nil {
		t.Fatal(err)
	}
	answer, err := p.Prove(said, n, circuit.Secret{})
	if err != nil {
		t.Fatal(err)
	}

	w, pk, err := AggregationKeys(sums)
	if err != nil {
		t.Fatal(err)
	}
	a, err := circuit.NewAggregator(w, pk)
	if err != nil {
		t.Fatal(err)
	}
	added := aggregation.Statement{Model: canon.Sum("model"), Part: "all"}
	updates := []circuit.Committed{{Update: []int32{1, 2, 3}}, {Update: []int32{-1, 5, 3}}}
	if err := added.Apply([][]int32{updates[0].Update, updates[1].Update}); err != nil {
		t.Fatal(err)
	}
	sum, err := a.Prove(added, updates)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		data []byte
		kind verifier.Kind
		by   verifier.Key
		not  verifier.Key
	}{{answer.Encode(), verifier.Inference, ofNetworks, ofSums},
		{sum.Encode(), verifier.Aggregation, ofSums, ofNetworks}} {
		made, err := verifier.Decode(c.data)
		if err != nil {
			t.Fatal(err)
		}
		if claim := made.Claim(); claim.Kind != c.kind || claim.Files != canon.Sum("model") {
			t.Errorf("it says %+v", claim)
		}
		if err := c.by.Verify(made); err != nil {
			t.Error(err)
		}
		if _, err := c.by.Export(made); err != nil {
			t.Error(err)
		}
		if err := c.not.Verify(made); !errors.Is(err, equation.ErrInvalid) {
			t.Errorf("by a key of another kind: %v", err)
		}
		if _, err := c.not.Export(made); !errors.Is(err, equation.ErrInvalid) {
			t.Errorf("exported by a key of another kind: %v", err)
		}
	}
}

// A setup is for one circuit.
func TestSetupsAreForOneCircuit(t *testing.T) {
	for name, s := range map[string]Setup{"nothing": {}, "two": {Leaves: 1, Updates: 2, Length: 2},
		"others": {Widths: []uint32{2, 2}, Rank: 1, In: 2, Out: 2}, "half": {Updates: 2},
		"narrow": {Widths: []uint32{2, 1}}} {
		if err := s.validate(); err == nil {
			t.Errorf("a setup for %s", name)
		}
	}
}
