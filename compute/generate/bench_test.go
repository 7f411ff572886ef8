package generate

import (
	"testing"

	"github.com/starling-network/starling/compute/model"
)

// BenchmarkRead reads one token after another with a model of 10 million weights, on one thread.
func BenchmarkRead(b *testing.B) {
	c, err := model.Parse(model.Llama, map[string]any{
		"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 6, "num_key_value_heads": 2,
		"intermediate_size": 1024, "max_position_embeddings": 256, "vocab_size": 256,
	})
	if err != nil {
		b.Fatal(err)
	}
	r := NewReader(c, 1)
	if err := r.SetWeights(c.Init(0)); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		if r.Len() == r.Context() {
			r.Reset()
		}
		if _, err := r.Read([]int32{1}); err != nil {
			b.Fatal(err)
		}
	}
}
