package listings

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/sim/random/wares"
)

var rewrite = flag.Bool("rewrite", false, "make testdata again, with other random numbers")

// The proof that is drawn holds, and is about the files that all listings have.
func TestTheProofHolds(t *testing.T) {
	if *rewrite {
		remake(t)
	}
	v, err := proof.NewVerifier(provenKey)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Decode(provenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(p); err != nil || p.Statement.Base != wares.Index || p.Statement.Adapter != wares.Index {
		t.Errorf("%v, about %s", err, p.Statement.Base)
	}
}

// remake makes the key and the proof.
func remake(t *testing.T) {
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
	s := proof.Statement{Base: wares.Index, Adapter: wares.Index, Module: "layer", Factor: math.Float64bits(1),
		Tokens: []uint32{1}}
	if err := s.Apply(w, proof.Fixed{Values: []int16{7, 8, -9}}); err != nil {
		t.Fatal(err)
	}
	made, err := p.Prove(s, w, circuit.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"verifying.key": key, "adapter.proof": made.Encode()} {
		if err := os.WriteFile(filepath.Join("testdata", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip("testdata was made again; play the test once more")
}
