package generate

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/detmath"
)

// Mixture reads sequences with several models of one vocabulary, the experts, as one model: the probability of a token
// is the mean of those that the experts give it, weighted by the probability that the sequence read so far is of the
// domain of each (Bayes' rule; Li et al. 2022, "Branch-Train-Merge", arXiv 2208.03306, section 3.3). So a sequence of n
// tokens has at most 1/n x ln(1/prior) nats a token more than its own expert gives it.
//
// It is a Model. A Mixture of one expert gives the logits of that expert, normalized.
type Mixture struct {
	experts []*Batch
	priors  []float64 // their logarithms
	rows    [][]float32
}

// NewMixture returns a mixture of experts, each with the probability that a sequence is of its domain before any token
// is read. The priors are positive, and need not add up to 1. The error wraps ErrWeights.
func NewMixture(experts []*Batch, priors []float64) (*Mixture, error) {
	if len(experts) == 0 || len(priors) != len(experts) {
		return nil, fmt.Errorf("%w: %d experts with %d priors", ErrWeights, len(experts), len(priors))
	}
	m := &Mixture{experts: experts}
	for i, e := range experts {
		if e.base.VocabSize() != experts[0].base.VocabSize() {
			return nil, fmt.Errorf("%w: expert %d has %d tokens, the first %d", ErrWeights, i, e.base.VocabSize(),
				experts[0].base.VocabSize())
		}
		if !(priors[i] > 0) || math.IsInf(priors[i], 0) {
			return nil, fmt.Errorf("%w: the prior of expert %d is %v", ErrWeights, i, priors[i])
		}
		m.priors = append(m.priors, detmath.Log64(priors[i]))
	}
	return m, nil
}

// mixed is what a Mixture knows of a sequence.
type mixed struct {
	parts []*Sequence // as each expert reads it
	logs  []float64   // of the probability of the domain and of the sequence, of each expert, up to a common term
	after [][]float32 // the logits of each expert after the last token; nil before one is read
}

// Context is that of the expert with the shortest.
func (m *Mixture) Context() int {
	n := m.experts[0].Context()
	for _, e := range m.experts {
		n = min(n, e.Context())
	}
	return n
}

// Memory is the number of bytes that the keys, values and last logits of a sequence take in all experts, at most.
func (m *Mixture) Memory(limit int) (n int64) {
	limit = min(limit, m.Context())
	for _, e := range m.experts {
		n += e.Memory(limit) + 4*int64(e.base.VocabSize())
	}
	return n
}

// Sequence begins a sequence of at most limit tokens. Experts have no adapters: it is nil but for adapter 0.
func (m *Mixture) Sequence(limit, adapter int) *Sequence {
	if adapter != 0 {
		return nil
	}
	s := &Sequence{limit: min(limit, m.Context()), vocab: m.experts[0].base.VocabSize(), mixed: &mixed{
		after: make([][]float32, len(m.experts))}}
	s.mixed.logs = append(s.mixed.logs, m.priors...)
	for _, e := range m.experts {
		s.mixed.parts = append(s.mixed.parts, e.Sequence(s.limit, 0))
	}
	return s
}

// End does nothing, as Batch.End.
func (m *Mixture) End(*Sequence) {}

// Read continues a sequence, as Batch.Read.
func (m *Mixture) Read(s *Sequence, tokens []int32) ([]float32, error) {
	if err := s.check(tokens); err != nil {
		return nil, err
	}
	for k, e := range m.experts {
		s.mixed.weigh(k, tokens[0])
		for rest := tokens; len(rest) > 0; {
			all, n, err := e.readPiece(s.mixed.parts[k], rest, true)
			if err == nil {
				err = Finite(all)
			}
			if err != nil {
				return nil, fmt.Errorf("expert %d: %w", k, err)
			}
			for i := range n {
				row := all[i*s.vocab:][:s.vocab]
				if i+1 < len(rest) {
					s.mixed.logs[k] += logOf(row, rest[i+1])
				} else {
					s.mixed.after[k] = append(s.mixed.after[k][:0], row...)
				}
			}
			rest = rest[n:]
		}
	}
	s.length += len(tokens)
	return s.mixed.mean(m.row(0, s.vocab)), nil
}

// Next continues each sequence by one token, as Batch.Next.
func (m *Mixture) Next(all []*Sequence, tokens []int32) ([][]float32, error) {
	for i, s := range all {
		if err := s.check(tokens[i : i+1]); err != nil {
			return nil, err
		}
	}
	parts := make([]*Sequence, len(all))
	for k, e := range m.experts {
		for i, s := range all {
			parts[i] = s.mixed.parts[k]
			s.mixed.weigh(k, tokens[i])
		}
		logits, err := e.Next(parts, tokens)
		if err != nil {
			return nil, fmt.Errorf("expert %d: %w", k, err)
		}
		for i, s := range all {
			s.mixed.after[k] = append(s.mixed.after[k][:0], logits[i]...)
		}
	}
	var rows [][]float32
	for i, s := range all {
		s.length++
		rows = append(rows, s.mixed.mean(m.row(i, s.vocab)))
	}
	return rows, nil
}

// row is memory for the i-th logits that a call returns.
func (m *Mixture) row(i, vocab int) []float32 {
	for len(m.rows) <= i {
		m.rows = append(m.rows, make([]float32, vocab))
	}
	return m.rows[i]
}

// weigh counts how probable an expert found the next token.
func (x *mixed) weigh(expert int, token int32) {
	if x.after[expert] != nil {
		x.logs[expert] += logOf(x.after[expert], token)
	}
}

// mean writes the logarithms of the probabilities of the next token. Where the logits of an expert are no finite
// numbers, those of the mixture are none either.
func (x *mixed) mean(out []float32) []float32 {
	most := math.Inf(-1)
	for k := range x.logs {
		most = max(most, x.logs[k])
	}
	sum := 0.0
	for k := range x.logs { // logarithms relative to the likeliest: nothing overflows in a long text
		x.logs[k] -= most
		sum += detmath.Exp64(x.logs[k])
	}
	shift := make([]float64, len(x.after)) // to be added to logits
	for k, logits := range x.after {
		largest, log := normal(logits)
		shift[k] = x.logs[k] - detmath.Log64(sum) - largest - log
	}
	for v := range out {
		high := math.Inf(-1)
		for k, logits := range x.after {
			high = max(high, float64(logits[v])+shift[k])
		}
		p := 0.0
		for k, logits := range x.after {
			p += detmath.Exp64(float64(logits[v]) + shift[k] - high)
		}
		out[v] = float32(high + detmath.Log64(p))
	}
	return out
}

// logOf is the logarithm of the probability of a token.
func logOf(logits []float32, id int32) float64 {
	most, log := normal(logits)
	return float64(logits[id]) - most - log
}

// normal is the largest of some logits, and the logarithm of the sum of the exponentials of their differences to it: a
// token with the logit x has the probability exp(x - most - log).
func normal(logits []float32) (most, log float64) {
	most = float64(logits[0])
	for _, x := range logits {
		most = max(most, float64(x))
	}
	sum := 0.0
	for _, x := range logits {
		sum += detmath.Exp64(float64(x) - most)
	}
	return most, detmath.Log64(sum)
}
