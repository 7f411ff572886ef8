package generate

import (
	"fmt"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/tensor"
)

// Stages are the layers of a model, each stage of which is held by another machine.
type Stages interface {
	// Run continues sequences by the layers of all stages, and returns the hidden state after the last token of each row:
	// [rows, width]. A row that starts at 0 begins a sequence.
	Run(p section.Pass) ([]float32, error)
	// End forgets a sequence; it is no error if there is none.
	End(id uint64)
	// Left are the stages without which a sequence was continued, ascending; nil: all computed it.
	Left(id uint64) []int
}

// Pipeline is a Model whose layers are in Stages. It has the weights before and after the layers, and no others. Its
// results have the bits of a Batch of the whole model, or of one without the layers of the stages that are Left. It is
// for one goroutine at a time.
type Pipeline struct {
	layout        section.Layout
	before, after *section.Section
	stages        Stages
	began         uint64      // sequences
	rows          [][]float32 // logits of Next
}

// NewPipeline returns the model whose layers are in stages, and whose other tensors are given by their names. The error
// wraps ErrWeights.
func NewPipeline(l section.Layout, tensors map[string]*tensor.Tensor, threads int, s Stages) (*Pipeline, error) {
	p := &Pipeline{layout: l, stages: s}
	var err error
	if p.before, p.after, err = section.Ends(l, tensors, threads); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	}
	return p, nil
}

// Context is the number of tokens that a sequence may have.
func (p *Pipeline) Context() int { return p.layout.Config.Context() }

// Sequence begins a sequence. There are no adapters: it is nil but for adapter 0.
func (p *Pipeline) Sequence(limit, adapter int) *Sequence {
	if adapter != 0 {
		return nil
	}
	p.began++
	return &Sequence{limit: min(limit, p.Context()), vocab: p.layout.Config.VocabSize(), id: p.began}
}

// Memory is the number of bytes that are kept here of a sequence of at most limit tokens, for a stage that has to be
// replaced: what each stage gets, and what comes of the last one.
func (p *Pipeline) Memory(limit int) int64 {
	return 4 * int64(p.layout.Stages+1) * int64(min(limit, p.Context())) * int64(p.layout.Config.Width)
}

// End has the stages forget a sequence.
func (p *Pipeline) End(s *Sequence) { p.stages.End(s.id) }

// Left are the stages without which a sequence was continued; nil: the model is whole.
func (p *Pipeline) Left(s *Sequence) []int { return p.stages.Left(s.id) }

// Read continues a sequence, as Batch.Read. The error wraps ErrStages, too.
func (p *Pipeline) Read(s *Sequence, tokens []int32) ([]float32, error) {
	if err := s.check(tokens); err != nil {
		return nil, err
	}
	var logits []float32
	for len(tokens) > 0 {
		n := min(piece, p.Context(), len(tokens))
		var err error
		if logits, err = p.run(len(tokens) > 1, []*Sequence{s}, [][]int32{tokens[:n]}); err != nil {
			return nil, err
		}
		tokens = tokens[n:]
	}
	logits = logits[:s.vocab]
	return logits, Finite(logits)
}

// Next continues each sequence by one token, as Batch.Next. The error wraps ErrStages, too.
func (p *Pipeline) Next(all []*Sequence, tokens []int32) ([][]float32, error) {
	vocab := p.layout.Config.VocabSize()
	for i, s := range all {
		if err := s.check(tokens[i : i+1]); err != nil {
			return nil, err
		}
		if len(p.rows) == i {
			p.rows = append(p.rows, make([]float32, vocab))
		}
	}
	for _, group := range groups(all, p.layout.Rounded) {
		for len(group) > 0 {
			n := min(len(group), section.MaxRows)
			var members []*Sequence
			var next [][]int32
			for _, i := range group[:n] {
				members, next = append(members, all[i]), append(next, tokens[i:i+1])
			}
			logits, err := p.run(false, members, next)
			if err != nil {
				return nil, err
			}
			for k, i := range group[:n] {
				copy(p.rows[i], logits[k*vocab:])
			}
			group = group[n:]
		}
	}
	return p.rows[:len(all)], nil
}

// run reads the tokens of each sequence, and returns the logits after the last of each.
func (p *Pipeline) run(whole bool, all []*Sequence, tokens [][]int32) ([]float32, error) {
	pass := section.Pass{Piece: whole}
	for i, s := range all {
		pass.Rows = append(pass.Rows, section.Row{ID: s.id, Start: s.length, Count: len(tokens[i]), Limit: s.limit})
	}
	var err error
	if pass.Hidden, err = p.before.Embed(pass, tokens); err != nil {
		return nil, err
	}
	if pass.Hidden, err = p.stages.Run(pass); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStages, err)
	}
	for i, s := range all {
		s.length += len(tokens[i])
	}
	return p.after.Logits(pass)
}
