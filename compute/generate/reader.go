// Package generate continues sequences of tokens with a model. A Reader computes the logits that follow one sequence
// and remembers its keys and values, so that a further token costs one pass over the weights; a Batch does so for
// many sequences in one pass, each with an adapter of its own if it has one; a Mixture reads them with several models,
// and weighs these by how well they predict the sequence; a Pipeline does so with a model whose layers are in stages on
// other machines; a Scheduler lets texts join and leave a Model, which is one of these, between tokens; a Sampling
// draws a token from logits.
//
// The same weights, tokens and sampling give the same tokens on every machine, whatever other texts are generated at
// the same time. The package knows no text: its callers have the tokenizers and files.
package generate

import "errors"

// Errors of a Reader, a Batch and a Scheduler, to be tested with errors.Is.
var (
	ErrWeights = errors.New("generate: weights that do not fit the model")
	ErrContext = errors.New("generate: more tokens than the model's context holds")
	ErrToken   = errors.New("generate: no token of the model")
	ErrNumbers = errors.New("generate: the model gives a logit that is no finite number")
	ErrMemory  = errors.New("generate: the text needs more memory than all texts may take")
	ErrStages  = errors.New("generate: the stages of the model do not answer")
)

// Model continues sequences of tokens: a Batch, a Mixture, or a Pipeline. It is for one goroutine at a time.
type Model interface {
	// Context is the number of tokens that a sequence may have.
	Context() int
	// Sequence begins a sequence, as Batch.Sequence.
	Sequence(limit, adapter int) *Sequence
	// Memory is the number of bytes that a sequence of at most limit tokens takes, at most.
	Memory(limit int) int64
	// Read continues one sequence by any number of tokens, as Batch.Read.
	Read(s *Sequence, tokens []int32) ([]float32, error)
	// Next continues many sequences by one token each, as Batch.Next.
	Next(all []*Sequence, tokens []int32) ([][]float32, error)
	// End forgets a sequence, which is not read any more.
	End(s *Sequence)
}

// Reader reads one sequence at a time. It is for one goroutine at a time.
type Reader struct {
	model    Model
	sequence *Sequence
}

// NewReader returns a reader that has read nothing.
func NewReader(m Model) *Reader {
	r := &Reader{model: m}
	r.Reset()
	return r
}

// Reset forgets the sequence.
func (r *Reader) Reset() {
	if r.sequence != nil {
		r.model.End(r.sequence)
	}
	r.sequence = r.model.Sequence(r.Context(), 0)
}

// Len is the number of tokens read.
func (r *Reader) Len() int { return r.sequence.Len() }

// Context is the number of tokens that a sequence may have.
func (r *Reader) Context() int { return r.model.Context() }

// Read continues the sequence, as Batch.Read.
func (r *Reader) Read(tokens []int32) ([]float32, error) { return r.model.Read(r.sequence, tokens) }
