package program

import (
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

func TestAttentionFlopsCountWhatIsSeen(t *testing.T) {
	for query := range 9 {
		for key := range 9 {
			for _, keys := range []int{1, 2, 5} {
				q, k := tensor.Make(tensor.Float32, 1, 1, 4, 3), tensor.Make(tensor.Float32, 1, 1, keys, 3)
				want := uint64(0)
				for i := range 4 {
					for j := range keys {
						if key+j <= query+i {
							want++
						}
					}
				}
				if got := attentionPairs(&Operator{Ints: []int64{int64(query), int64(key)}}, q, k); got != want {
					t.Fatalf("query at %d, %d keys at %d: %d pairs, want %d", query, keys, key, got, want)
				}
			}
		}
	}
}
