// Package heldout has the part of a job's data on which its checkpoints are measured. It measures nothing.
package heldout

import (
	"math"
	"slices"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/node/prepare"
)

// Most examples of one evaluation: of text; of answers to prompts, of the classes of texts, or pairs of texts; and of
// other classes, where an example is one answer too, and small.
const (
	mostText    = 128
	mostAnswers = 512
	mostClasses = 1024
)

// Batches are the batches of examples on which the loss of checkpoints is measured; none if nothing is held out.
func Batches(b *prepare.CompiledJob) [][]int32 {
	most := mostText
	switch {
	case b.Language == nil && b.Tokenizer == nil:
		most = mostClasses
	case b.Job.Task == spec.TaskGRPO || b.Job.EncodesText():
		most = mostAnswers
	}
	return b.Corpus.ValBatches(b.EvalBatch, int(b.Spec.Length), most/b.EvalBatch)
}

// Bytes is how many bytes of text the tokens are that an evaluation predicts: of each window all but its first, and but
// those that are read only.
func Bytes(b *prepare.CompiledJob) int {
	_, bytes := predicted(b)
	return bytes
}

// predicted counts the tokens that an evaluation predicts, and the bytes of their text.
func predicted(b *prepare.CompiledJob) (tokens, bytes int) {
	window, vocab := int(b.Spec.Length)+1, int32(b.Tokenizer.VocabSize())
	for _, batch := range Batches(b) {
		for ; len(batch) >= window; batch = batch[window:] {
			said := slices.DeleteFunc(slices.Clone(batch[:window]), func(id int32) bool { return id >= vocab })
			first := batch[:1]
			if first[0] >= vocab {
				first = nil
			}
			tokens += len(said) - len(first)
			bytes += textBytes(b.Tokenizer, said) - textBytes(b.Tokenizer, first)
		}
	}
	return tokens, bytes
}

func textBytes(t *tokenizer.Tokenizer, tokens []int32) int {
	ids := make([]uint32, len(tokens))
	for i, id := range tokens {
		ids[i] = uint32(id)
	}
	return len(t.Decode(ids))
}

// BitsPerByte is a loss on the held-out text in bits a byte; nil where there is no loss or no text, or the loss is of
// something else.
func BitsPerByte(b *prepare.CompiledJob, loss *float64) *float64 {
	if !b.Job.PredictsText() {
		return nil
	}
	tokens, bytes := predicted(b)
	if loss == nil || bytes == 0 {
		return nil
	}
	bits := *loss * float64(tokens) / math.Ln2 / float64(bytes)
	return &bits
}
