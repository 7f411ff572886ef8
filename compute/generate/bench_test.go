package generate

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
)

// BenchmarkNext reads one token after another of several sequences with a model of 10 million weights, on one thread.
func BenchmarkNext(b *testing.B) {
	c, err := architecture.Parse(architecture.Llama, map[string]any{
		"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 6, "num_key_value_heads": 2,
		"intermediate_size": 1024, "max_position_embeddings": 256, "vocab_size": 256,
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			batch := NewBatch(c, 1)
			if err := batch.SetWeights(c.Init(0)); err != nil {
				b.Fatal(err)
			}
			all, tokens := make([]*Sequence, n), make([]int32, n)
			for i := range b.N {
				if i%c.Context() == 0 {
					for j := range all {
						all[j] = batch.Sequence(c.Context(), 0)
					}
				}
				if _, err := batch.Next(all, tokens); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
