// Package answeredtest is a small model that is hosted, with receipts of its answers, for tests of disputes about them.
package answeredtest

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/answer"
)

// Vocab is the number of tokens of the model.
const Vocab = 256

// Hosted is a model that is hosted, with its checking program for short texts.
type Hosted struct {
	Config  architecture.Config
	Weights map[string]*tensor.Tensor
	Root    canon.Digest
	Roots   []canon.Digest
	Program *program.Program
}

// Host returns a model with weights of a seed.
func Host(t testing.TB, seed uint64) *Hosted {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": Vocab, "max_position_embeddings": 128,
		"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6,
		"num_key_value_heads": 2, "head_dim": 4})
	if err != nil {
		t.Fatal(err)
	}
	h := &Hosted{Config: c, Weights: c.Init(seed)}
	for i, n := range c.Tensors() {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, seed, uint64(i))
		for j := range noise {
			h.Weights[n.Name].F32()[j] += 0.2 * noise[j]
		}
	}
	if h.Root, h.Roots, err = check.Weights(c, h.Weights); err != nil {
		t.Fatal(err)
	}
	if h.Program, err = check.Program(c, 64, Vocab, nil); err != nil {
		t.Fatal(err)
	}
	return h
}

// Answer is the receipt of a provider for an answer of the model of 20 tokens.
func (h *Hosted) Answer(t testing.TB, provider string) answer.Receipt {
	t.Helper()
	r := answer.Receipt{Chain: "starling-1", Model: 1, Weights: h.Root, Program: h.Program.Digest(),
		Prompt: []int32{1, 250, 3, 77, 5}, Asked: 20, Temperature: 900_000, TopP: 950_000, Seed: 1 << 63, First: 3, Height: 1,
		Provider: provider}
	b := generate.NewBatch(h.Config, 1)
	if err := b.SetWeights(h.Weights); err != nil {
		t.Fatal(err)
	}
	s := generate.NewScheduler(b, generate.Limits{Memory: 1 << 30})
	if _, err := s.Submit(generate.Request{Prompt: r.Prompt, Tokens: int(r.Asked), Sampling: generate.Sampling{
		Temperature: 0.9, TopP: 0.95, Seed: r.Seed, First: r.First, Checked: true}}); err != nil {
		t.Fatal(err)
	}
	for len(r.Answer) < int(r.Asked) {
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			r.Answer = append(r.Answer, token.ID)
		}
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}
