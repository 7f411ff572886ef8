package adapter

import (
	"math"
	"math/rand/v2"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/inference"
	"github.com/starling-network/starling/proof/verifier"
)

func ofAdapter(o Options) subject {
	shape := proof.Shape{Rank: uint32(o.Rank), In: uint32(o.In), Out: uint32(o.Out)}
	return subject{shape.String(), shape.Weights(),
		func() ([]byte, *groth16.ProvingKey, int, error) { return circuit.Setup(shape) },
		func(key []byte, pk *groth16.ProvingKey) (func() (verifier.Proof, []byte, error), error) {
			v, err := proof.NewVerifier(key)
			if err != nil {
				return nil, err
			}
			p, err := circuit.NewProver(v, pk)
			if err != nil {
				return nil, err
			}
			w, s, err := drawn(shape, o.Tokens)
			return func() (verifier.Proof, []byte, error) {
				made, err := p.Prove(s, w, circuit.Secret{1})
				return verifier.Proof{Adapter: &made}, made.Encode(), err
			}, err
		}}
}

func ofNetwork(o Options) subject {
	shape := inference.Shape{}
	for _, w := range o.Widths {
		shape.Widths = append(shape.Widths, uint32(min(w, math.MaxUint32)))
	}
	x := subject{name: shape.String()}
	x.setup = func() ([]byte, *groth16.ProvingKey, int, error) { return circuit.SetupInference(shape) }
	if shape.Validate() != nil { // which the setup reports
		return x
	}
	x.numbers = shape.Weights()
	x.prover = func(key []byte, pk *groth16.ProvingKey) (func() (verifier.Proof, []byte, error), error) {
		v, err := inference.NewVerifier(key)
		if err != nil {
			return nil, err
		}
		p, err := circuit.NewInferrer(v, pk)
		if err != nil {
			return nil, err
		}
		rng := rand.New(rand.NewPCG(1, 2))
		var layers []inference.Floats
		for i, out := range shape.Widths[1:] {
			f := inference.Floats{Weights: make([]float32, shape.Widths[i]*out), Added: make([]float32, out)}
			for k := range f.Weights {
				f.Weights[k] = float32(rng.NormFloat64() / math.Sqrt(float64(shape.Widths[i])))
			}
			layers = append(layers, f)
		}
		n, err := inference.Quantise(shape, layers)
		if err != nil {
			return nil, err
		}
		pixels := make([]byte, shape.Inputs())
		for i := range pixels {
			pixels[i] = byte(rng.IntN(256))
		}
		s := inference.Statement{Model: canon.Sum("bench")}
		return func() (verifier.Proof, []byte, error) {
			made, err := p.Prove(s, n, circuit.Secret{1})
			return verifier.Proof{Inference: &made}, made.Encode(), err
		}, s.Apply(n, pixels)
	}
	return x
}

func ofSum(o Options) subject {
	shape := aggregation.Shape{Updates: uint32(o.Updates), Length: uint32(o.Length)}
	return subject{shape.String(), o.Updates * o.Length,
		func() ([]byte, *groth16.ProvingKey, int, error) { return circuit.SetupAggregation(shape) },
		func(key []byte, pk *groth16.ProvingKey) (func() (verifier.Proof, []byte, error), error) {
			v, err := aggregation.NewVerifier(key)
			if err != nil {
				return nil, err
			}
			a, err := circuit.NewAggregator(v, pk)
			if err != nil {
				return nil, err
			}
			rng := rand.New(rand.NewPCG(1, 2))
			s := aggregation.Statement{Model: canon.Sum("bench"), Part: "all"}
			var updates []circuit.Committed
			var values [][]int32
			for i := range o.Updates {
				u := make([]int32, o.Length)
				for j := range u {
					u[j] = int32(rng.NormFloat64() * (1 << 22) / math.Sqrt(float64(o.Length)))
				}
				updates, values = append(updates, circuit.Committed{Update: u, Secret: circuit.Secret{byte(i)}}), append(values, u)
			}
			return func() (verifier.Proof, []byte, error) {
				made, err := a.Prove(s, updates)
				return verifier.Proof{Aggregation: &made}, made.Encode(), err
			}, s.Apply(values)
		}}
}

// drawn are an adapter and a statement with normal numbers.
func drawn(shape proof.Shape, tokens int) (w proof.Weights, s proof.Statement, err error) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(n uint32, std float64) proof.Fixed {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(rng.NormFloat64() * std)
		}
		f, e := proof.Quantise(list)
		if e != nil {
			err = e
		}
		return f
	}
	w = proof.Weights{Shape: shape, A: numbers(shape.Rank*shape.In, 0.02), B: numbers(shape.Rank*shape.Out, 0.01)}
	s = proof.Statement{Base: canon.Sum("bench"), Adapter: canon.Sum("bench"), Module: "layer",
		Factor: math.Float64bits(2), Tokens: make([]uint32, tokens)}
	x := numbers(uint32(tokens)*shape.In, 1)
	if err == nil {
		err = s.Apply(w, x)
	}
	return w, s, err
}
