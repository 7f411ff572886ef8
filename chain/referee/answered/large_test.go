package answered_test

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/protocol/answer"
)

// Accusations about a model of 1.1 billion weights can be decided, within the gas of a transaction.
func TestLargeModelCanBeDecided(t *testing.T) {
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 32000, "max_position_embeddings": 4096,
		"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
		"num_key_value_heads": 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int{500, answer.MaxTokens} {
		p, err := check.Program(c, answer.Length(tokens), 32000, []int32{2})
		if err != nil {
			t.Fatal(err)
		}
		r := answer.Receipt{Chain: "c", Provider: provider, Weights: canon.Sum("weights"), Program: p.Digest(), TopP: 1,
			Prompt: make([]int32, tokens-200), Answer: make([]int32, 200), Asked: 200, Height: 1}
		code := p.Encode()
		x, err := answered.Open(r, 0, code)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := x.Decidable(evidence.MaxCheck)
		if err != nil {
			t.Fatalf("texts of %d tokens: %v", tokens, err)
		}
		t.Logf("texts of %d tokens: %d operators in %d bytes, %.3g operations, %d units to check", tokens, len(p.Ops),
			len(code), float64(p.Flops()), cost)
	}
}
