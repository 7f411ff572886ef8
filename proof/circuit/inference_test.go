package circuit

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/inference"
)

// reads is a small key of networks, its prover, and a network with a hidden layer, of which some values are zero.
type reads struct {
	t *testing.T
	v *inference.Verifier
	p *Inferrer
	n inference.Network
}

func openNetwork(t *testing.T) *reads {
	t.Helper()
	shape := inference.Shape{Widths: []uint32{6, 5, 3}}
	key, pk, _, err := SetupInference(shape)
	if err != nil {
		t.Fatal(err)
	}
	r := &reads{t: t}
	if r.v, err = inference.NewVerifier(key); err != nil {
		t.Fatal(err)
	}
	if r.p, err = NewInferrer(r.v, pk); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var layers []inference.Floats
	for i, out := range shape.Widths[1:] {
		f := inference.Floats{Weights: make([]float32, shape.Widths[i]*out), Added: make([]float32, out)}
		for _, list := range [][]float32{f.Weights, f.Added} {
			for k := range list {
				list[k] = float32(rng.NormFloat64())
			}
		}
		layers = append(layers, f)
	}
	if r.n, err = inference.Quantise(shape, layers); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reads) state(pixels ...byte) inference.Statement {
	r.t.Helper()
	s := inference.Statement{Model: canon.Sum("model"), Owner: "owner"}
	if err := s.Apply(r.n, pixels); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// A proof holds for one statement, and for no other image, output, model, account, commitment or key.
func TestInferencesHoldForOneStatement(t *testing.T) {
	r := openNetwork(t)
	good, err := r.p.Prove(r.state(0, 20, 255, 127, 128, 9), r.n, Secret{7})
	if err != nil {
		t.Fatal(err)
	}
	read, err := inference.Decode(good.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.v.Verify(read); err != nil {
		t.Fatal(err)
	}
	other, err := r.p.Prove(r.state(1, 2, 3, 4, 5, 6), r.n, Secret{7})
	if err != nil || !bytes.Equal(other.Commitment, good.Commitment) {
		t.Fatalf("another commitment to the same network: %v", err)
	}
	changes := map[string]func(*inference.Proof){
		"model":      func(p *inference.Proof) { p.Statement.Model = canon.Sum("another") },
		"owner":      func(p *inference.Proof) { p.Statement.Owner = "" },
		"exponent":   func(p *inference.Proof) { p.Statement.Exponents = []int16{p.Statement.Exponents[0] + 1, 0} },
		"points":     func(p *inference.Proof) { p.Points = other.Points },
		"commitment": func(p *inference.Proof) { p.Commitment = slices.Clone(p.Points[:32]) },
		"shape": func(p *inference.Proof) {
			p.Statement.Shape.Widths, p.Statement.Exponents = []uint32{6, 3}, p.Statement.Exponents[:1]
		},
		"known": func(p *inference.Proof) { p.Points = slices.Concat(p.Points[:128], p.Points[:32]) },
	}
	for i := range good.Statement.Pixels {
		changes["pixel "+string(rune('0'+i))] = func(p *inference.Proof) {
			p.Statement.Pixels = slices.Clone(p.Statement.Pixels)
			p.Statement.Pixels[i] ^= 1
		}
	}
	for i := range good.Statement.Outputs {
		changes["output byte "+string(rune('a'+i))] = func(p *inference.Proof) {
			p.Statement.Outputs = slices.Clone(p.Statement.Outputs)
			p.Statement.Outputs[i] ^= 1
		}
	}
	for name, change := range changes {
		bad := good
		change(&bad)
		if err := r.v.Verify(bad); !errors.Is(err, equation.ErrInvalid) && !errors.Is(err, equation.ErrForm) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := openNetwork(t).v.Verify(good); !errors.Is(err, equation.ErrInvalid) {
		t.Errorf("another key: %v", err)
	}
}

// No proof is made of outputs that are not those of the weights, of a network with one other weight, or of a sum that
// does not fit: not even by the owner.
func TestFalseInferencesCannotBeProven(t *testing.T) {
	r := openNetwork(t)
	pixels := []byte{200, 20, 255, 127, 128, 9}
	s := r.state(pixels...)
	refused := 0
	try := func(name string, s inference.Statement, n inference.Network) {
		t.Helper()
		if _, err := r.p.Prove(s, n, Secret{7}); err == nil {
			t.Errorf("a proof with another %s", name)
		}
		refused++
	}
	for i := range s.Shape.Classes() {
		bad := s
		bad.Outputs = slices.Clone(s.Outputs)
		bad.Outputs[8*i]++
		try("output", bad, r.n)
	}
	for i := range r.n.Layers {
		for k := range r.n.Layers[i].Weights {
			bad := r.n
			bad.Layers = slices.Clone(r.n.Layers)
			bad.Layers[i].Weights = slices.Clone(r.n.Layers[i].Weights)
			bad.Layers[i].Weights[k] += 1 << 20
			if !slices.Equal(bad.Run(pixels), r.n.Run(pixels)) {
				try("weight", s, bad)
			}
		}
		for k := range r.n.Layers[i].Added {
			bad := r.n
			bad.Layers = slices.Clone(r.n.Layers)
			bad.Layers[i].Added = slices.Clone(r.n.Layers[i].Added)
			bad.Layers[i].Added[k] += 1 << 36
			if !slices.Equal(bad.Run(pixels), r.n.Run(pixels)) {
				try("number that is added", s, bad)
			}
		}
	}
	for _, sum := range []int64{inference.Bound, -1<<46 - 1<<23, 1 << 60, -1 << 62} {
		bad := r.n
		bad.Layers = slices.Clone(r.n.Layers)
		bad.Layers[0].Added = slices.Clone(r.n.Layers[0].Added)
		bad.Layers[0].Added[0] = sum
		bad.Layers[0].Weights = make([]int32, len(bad.Layers[0].Weights))
		r.n, s = bad, inference.Statement{Model: canon.Sum("model")}
		if err := s.Apply(bad, pixels); err != nil {
			t.Fatal(err)
		}
		try("sum beyond its bound", s, bad)
	}
	if refused < 25 {
		t.Errorf("%d changes alone were tried", refused)
	}
}
