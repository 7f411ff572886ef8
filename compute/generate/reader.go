// Package generate continues sequences of tokens with a model. A Reader computes the logits that follow one sequence
// and remembers its keys and values, so that a further token costs one pass over the weights; a Batch does so for
// many sequences in one pass, each with an adapter of its own if it has one; a Scheduler lets texts join and leave a
// Batch between tokens; a Sampling draws a token from logits.
//
// The same weights, tokens and sampling give the same tokens on every machine, whatever other texts are generated at
// the same time. The package knows no text: its callers have the tokenizers and files.
package generate

import (
	"errors"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// Errors of a Reader, a Batch and a Scheduler, to be tested with errors.Is.
var (
	ErrWeights = errors.New("generate: weights that do not fit the model")
	ErrContext = errors.New("generate: more tokens than the model's context holds")
	ErrToken   = errors.New("generate: no token of the model")
	ErrNumbers = errors.New("generate: the model gives a logit that is no finite number")
	ErrMemory  = errors.New("generate: the text needs more memory than all texts may take")
)

// Reader reads one sequence at a time. It is for one goroutine at a time.
type Reader struct {
	batch    *Batch
	sequence *Sequence
}

// NewReader returns a reader without weights that computes on up to the given number of threads.
func NewReader(c architecture.Config, threads int) *Reader {
	r := &Reader{batch: NewBatch(c, threads)}
	r.Reset()
	return r
}

// SetWeights gives the reader the tensors of a model by their Hugging Face names, which it reads but does not copy, and
// forgets the sequence. The error wraps ErrWeights.
func (r *Reader) SetWeights(tensors map[string]*tensor.Tensor) error {
	r.Reset()
	return r.batch.SetWeights(tensors)
}

// Reset forgets the sequence.
func (r *Reader) Reset() { r.sequence = r.batch.Sequence(r.Context(), 0) }

// Len is the number of tokens read.
func (r *Reader) Len() int { return r.sequence.Len() }

// Context is the number of tokens that a sequence may have.
func (r *Reader) Context() int { return r.batch.Context() }

// Read continues the sequence, as Batch.Read.
func (r *Reader) Read(tokens []int32) ([]float32, error) { return r.batch.Read(r.sequence, tokens) }
