package generate

import (
	"errors"
	"fmt"
	"slices"
)

// Limits bound what a Scheduler does at once.
type Limits struct {
	Texts  int   // that are written at once
	Memory int64 // largest number of bytes of all keys and values
}

// Request is a text to be continued.
type Request struct {
	Prompt   []int32 // at least one token
	Tokens   int     // to add, at most; the context may end the text before
	Sampling Sampling
	Vocab    int     // only the first so many ids are drawn; 0 is all
	Ends     []int32 // the tokens that end a text
	Adapter  int     // number of the adapter, or 0
	Likely   int     // how many of the likeliest tokens are wanted with each token
}

// Text is a request in work.
type Text struct {
	Request
	sequence *Sequence
	memory   int64
	read     int // tokens of the prompt
	made     int // tokens drawn
	next     int32
}

// Finish is why a text ended; "" while it is generated.
type Finish string

// The reasons.
const (
	FinishEnd    Finish = "stop"   // the model ended it
	FinishLength Finish = "length" // it has as many tokens as were asked for, or as the context holds
)

// Token is what happened to a text in a step. The last one of a text has a Finish or an Err; one with Finish "stop" is
// the token that ends a text, which is not of it.
type Token struct {
	Text   *Text
	ID     int32
	Log    float64  // of its probability, before temperature and cuts
	Likely []Chance // as many as the request wants, the likeliest first
	Finish Finish
	Err    error // wraps ErrNumbers or ErrStages
	Left   []int // stages of the model without which the text was continued so far, ascending; nil: it is whole
}

// partial is a model that may leave out stages.
type partial interface{ Left(s *Sequence) []int }

// Chance is a token and the logarithm of its probability.
type Chance struct {
	ID  int32
	Log float64
}

// Scheduler writes many texts at a time with one Model: they wait in turn for room, and come and go between tokens. A
// text is the same whatever else is written. It is for one goroutine at a time.
type Scheduler struct {
	model   Model
	limits  Limits
	memory  int64 // of those in work
	waiting []*Text
	running []*Text
}

// NewScheduler returns a scheduler without texts. The model is its own.
func NewScheduler(m Model, l Limits) *Scheduler {
	l.Texts = max(l.Texts, 1)
	return &Scheduler{model: m, limits: l}
}

// Submit puts a text at the end of the line. The error wraps ErrSampling, ErrToken, ErrContext, for a prompt that
// leaves the context no room for a token, or ErrMemory.
func (s *Scheduler) Submit(r Request) (*Text, error) {
	if err := r.Sampling.Check(); err != nil {
		return nil, err
	}
	t := &Text{Request: r}
	// The last token is drawn, not read.
	limit := min(len(r.Prompt)+r.Tokens-1, s.model.Context())
	t.sequence, t.memory = s.model.Sequence(limit, r.Adapter), s.model.Memory(limit)
	if r.Tokens < 1 || t.sequence == nil {
		return nil, fmt.Errorf("%w: %d tokens with adapter %d", ErrSampling, r.Tokens, r.Adapter)
	}
	if err := t.sequence.check(r.Prompt); err != nil {
		return nil, err
	}
	if t.memory > s.limits.Memory {
		return nil, fmt.Errorf("%w: %d bytes for %d tokens, there are %d", ErrMemory, t.memory, limit, s.limits.Memory)
	}
	s.waiting = append(s.waiting, t)
	return t, nil
}

// Cancel ends a text; it is no error if it has ended. No Token tells of it.
func (s *Scheduler) Cancel(t *Text) {
	is := func(x *Text) bool { return x == t }
	s.waiting = slices.DeleteFunc(s.waiting, is)
	if i := slices.IndexFunc(s.running, is); i >= 0 {
		s.running = slices.Delete(s.running, i, i+1)
		s.memory -= t.memory
		s.model.End(t.sequence)
	}
}

// Load is the number of texts that wait and that are in work.
func (s *Scheduler) Load() (waiting, running int) { return len(s.waiting), len(s.running) }

// Step reads a piece of the prompt of the first text that has some left, draws the next token of every text that has
// been read, and tells of these in the order in which the texts came. Without a text it does nothing. After an error,
// which is none of a text, the scheduler is of no use.
func (s *Scheduler) Step() ([]Token, error) {
	s.admit()
	ready := slices.DeleteFunc(slices.Clone(s.running), func(t *Text) bool { return t.read < len(t.Prompt) })
	var out []Token
	first, err := s.readPrompt()
	if err != nil {
		return nil, err
	}
	if len(ready) > 0 {
		sequences, tokens := make([]*Sequence, len(ready)), make([]int32, len(ready))
		for i, t := range ready {
			sequences[i], tokens[i] = t.sequence, t.next
		}
		logits, err := s.model.Next(sequences, tokens)
		if err != nil && !errors.Is(err, ErrStages) {
			return nil, err
		}
		for i, t := range ready {
			if err != nil {
				out = append(out, Token{Text: t, Err: err})
				continue
			}
			out = append(out, t.draw(logits[i]))
		}
	}
	if first != nil {
		out = append(out, *first)
	}
	for i, token := range out {
		if m, ok := s.model.(partial); ok {
			out[i].Left = m.Left(token.Text.sequence)
		}
		if token.Finish != "" || token.Err != nil {
			s.Cancel(token.Text)
		}
	}
	return out, nil
}

// admit takes texts from the line while there is room for the first.
func (s *Scheduler) admit() {
	for len(s.waiting) > 0 && len(s.running) < s.limits.Texts && s.memory+s.waiting[0].memory <= s.limits.Memory {
		t := s.waiting[0]
		s.waiting, s.running, s.memory = s.waiting[1:], append(s.running, t), s.memory+t.memory
	}
}

// readPrompt reads a piece of a prompt, and draws the first token after the last one.
func (s *Scheduler) readPrompt() (*Token, error) {
	i := slices.IndexFunc(s.running, func(t *Text) bool { return t.read < len(t.Prompt) })
	if i < 0 {
		return nil, nil
	}
	t := s.running[i]
	n := min(piece, len(t.Prompt)-t.read)
	logits, err := s.model.Read(t.sequence, t.Prompt[t.read:][:n])
	t.read += n
	switch {
	case errors.Is(err, ErrNumbers), errors.Is(err, ErrStages):
		return &Token{Text: t, Err: err}, nil
	case err != nil:
		return nil, err
	case t.read < len(t.Prompt):
		return nil, nil
	}
	token := t.draw(logits)
	return &token, nil
}

// draw takes the next token from logits.
func (t *Text) draw(logits []float32) Token {
	if err := Finite(logits); err != nil {
		return Token{Text: t, Err: err}
	}
	if t.Vocab > 0 {
		logits = logits[:min(t.Vocab, len(logits))]
	}
	id := t.Sampling.Pick(logits, uint64(t.made))
	token := Token{Text: t, ID: id}
	token.Log, token.Likely = chances(logits, id, t.Likely)
	t.next = id
	t.made++
	switch {
	case slices.Contains(t.Ends, id):
		token.Finish = FinishEnd
	case t.made == t.Tokens || t.sequence.Len() == t.sequence.limit:
		token.Finish = FinishLength
	}
	return token
}

// chances are the log probabilities of a token and of the n likeliest.
func chances(logits []float32, id int32, n int) (of float64, likely []Chance) {
	most, log := normal(logits)
	logOf := func(id int32) float64 { return float64(logits[id]) - most - log }
	if n > 0 {
		c := candidates{ids: make([]int32, len(logits)), weights: make([]float64, len(logits))}
		for i, x := range logits {
			c.ids[i], c.weights[i] = int32(i), float64(x)
		}
		c.keep(func(k int, _ float64) bool { return k == n })
		for _, id := range c.ids {
			likely = append(likely, Chance{id, logOf(id)})
		}
	}
	return logOf(id), likely
}
