package prepare

import (
	"math"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// HeldOut are the batches of windows on which the loss of checkpoints is measured; none if nothing is held out.
func HeldOut(b *CompiledJob) [][]int32 {
	return b.Corpus.ValBatches(b.EvalBatch, int(b.Spec.Length), EvalSequences/b.EvalBatch)
}

// HeldOutBytes is how many bytes of text the tokens are that an evaluation predicts: of each window all but its first.
func HeldOutBytes(b *CompiledJob) (bytes int) {
	window := int(b.Spec.Length) + 1
	for _, batch := range HeldOut(b) {
		for ; len(batch) >= window; batch = batch[window:] {
			bytes += textBytes(b.Tokenizer, batch[:window]) - textBytes(b.Tokenizer, batch[:1])
		}
	}
	return bytes
}

func textBytes(t *tokenizer.Tokenizer, tokens []int32) int {
	ids := make([]uint32, len(tokens))
	for i, id := range tokens {
		ids[i] = uint32(id)
	}
	return len(t.Decode(ids))
}

// BitsPerByte is a loss on the held-out text in bits a byte; nil where there is no loss or no text.
func BitsPerByte(b *CompiledJob, loss *float64) *float64 {
	bytes := HeldOutBytes(b)
	if loss == nil || bytes == 0 {
		return nil
	}
	tokens := len(HeldOut(b)) * b.EvalBatch * int(b.Spec.Length)
	bits := *loss * float64(tokens) / math.Ln2 / float64(bytes)
	return &bits
}
