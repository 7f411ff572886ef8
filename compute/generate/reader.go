// Package generate continues sequences of tokens with a model: a Reader computes the logits that follow a sequence and
// remembers its keys and values, so that a further token costs one pass over the weights; a Sampling draws a token from
// logits.
//
// The same weights, tokens and sampling give the same tokens on every machine. It knows no text: tokenizers, files and
// what is done with the tokens are its callers'.
package generate

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Errors of a Reader, to be tested with errors.Is.
var (
	ErrWeights = errors.New("generate: weights that do not fit the model")
	ErrContext = errors.New("generate: more tokens than the model's context holds")
	ErrToken   = errors.New("generate: no token of the model")
	ErrNumbers = errors.New("generate: the model gives a logit that is no finite number")
)

const (
	piece     = 64 // tokens that are read at once
	minMemory = 64 // tokens; memory doubles from here on
)

// Reader reads one sequence at a time. It is for one goroutine at a time.
type Reader struct {
	config  model.Config
	threads int
	passes  map[size]*pass
	memory  []*tensor.Tensor // keys and values of the layers, in turn: [room, kvHeads, headDim]
	room    int              // tokens
	length  int              // tokens read
	weights map[string]*tensor.Tensor
}

// A size of a pass: the tokens it reads and the tokens before them that it can remember.
type size struct{ tokens, past int }

// A pass is a compiled model.Extend with its inputs and outputs.
type pass struct {
	exec    *program.Exec
	in, out map[string]*tensor.Tensor
}

// NewReader returns a reader without weights that computes on up to the given number of threads.
func NewReader(c model.Config, threads int) *Reader {
	return &Reader{config: c, threads: threads, passes: map[size]*pass{}}
}

// SetWeights gives the reader the tensors of a model by their Hugging Face names, which it reads but does not copy, and
// forgets the sequence. The error wraps ErrWeights.
func (r *Reader) SetWeights(tensors map[string]*tensor.Tensor) error {
	weights := map[string]*tensor.Tensor{}
	for _, t := range r.config.Tensors() {
		w, ok := tensors[t.Name]
		if !ok || !w.Shape.Equal(t.Shape) {
			return fmt.Errorf("%w: no tensor %q of shape %v", ErrWeights, t.Name, t.Shape)
		}
		weights[train.Param+t.Name] = w
	}
	r.weights = weights
	r.passes = map[size]*pass{}
	r.Reset()
	return nil
}

// Reset forgets the sequence.
func (r *Reader) Reset() {
	for _, m := range r.memory {
		clear(m.Bytes())
	}
	r.length = 0
}

// Len is the number of tokens read.
func (r *Reader) Len() int { return r.length }

// Context is the number of tokens that a sequence may have.
func (r *Reader) Context() int { return r.config.Context() }

// Read continues the sequence by at least one token and returns the logits that follow the last one [vocab], valid until
// the next call. The error wraps ErrContext, if the sequence became too long, ErrToken or ErrNumbers; after the first
// two nothing was read.
func (r *Reader) Read(tokens []int32) ([]float32, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%w: none is given", ErrToken)
	}
	if r.length+len(tokens) > r.Context() {
		return nil, fmt.Errorf("%w: %d after %d, it holds %d", ErrContext, len(tokens), r.length, r.Context())
	}
	for _, id := range tokens {
		if id < 0 || int(id) >= r.config.VocabSize() {
			return nil, fmt.Errorf("%w: %d, it has %d", ErrToken, id, r.config.VocabSize())
		}
	}
	var logits []float32
	for len(tokens) > 0 {
		n, err := r.step(tokens, &logits)
		if err != nil {
			return nil, err
		}
		tokens = tokens[n:]
	}
	for i, x := range logits {
		if d := x - x; d != 0 { // NaN or an infinity
			return nil, fmt.Errorf("%w: %v for token %d", ErrNumbers, x, i)
		}
	}
	return logits, nil
}

// step reads the first tokens, as many as go at once, and returns how many these were.
func (r *Reader) step(tokens []int32, logits *[]float32) (int, error) {
	s := size{tokens: 1, past: r.rounded(max(r.length, 1))}
	if len(tokens) > 1 {
		s.tokens = min(piece, r.Context())
	}
	n := min(s.tokens, len(tokens))
	p, err := r.pass(s)
	if err != nil {
		return 0, err
	}
	r.grow(max(s.past, r.length+n))
	layers, _ := r.config.Memory(1)
	for i := range layers {
		p.in[model.KeysName(i)] = r.first(r.memory[2*i], s.past)
		p.in[model.ValuesName(i)] = r.first(r.memory[2*i+1], s.past)
	}
	clear(p.in["tokens"].I32()[copy(p.in["tokens"].I32(), tokens):])
	p.in["start"].I32()[0], p.in["last"].I32()[0] = int32(r.length), int32(n-1)
	if err := p.exec.RunInto(p.in, p.out); err != nil {
		return 0, err
	}
	for i := range layers {
		r.remember(r.memory[2*i], p.out[model.KeysName(i)], n)
		r.remember(r.memory[2*i+1], p.out[model.ValuesName(i)], n)
	}
	r.length += n
	*logits = p.out["logits"].F32()
	return n, nil
}

// rounded is the size of memory for n tokens: sizes double, so that there are few programs.
func (r *Reader) rounded(n int) int {
	room := minMemory
	for room < n {
		room *= 2
	}
	return min(room, r.Context())
}

// grow makes room for n tokens.
func (r *Reader) grow(n int) {
	if n <= r.room {
		return
	}
	r.room = r.rounded(n)
	layers, s := r.config.Memory(r.room)
	old := r.memory
	r.memory = make([]*tensor.Tensor, 2*layers)
	for i := range r.memory {
		r.memory[i] = tensor.New(s)
		if old != nil {
			copy(r.memory[i].Bytes(), old[i].Bytes())
		}
	}
}

// first is the memory of the first n tokens.
func (r *Reader) first(m *tensor.Tensor, n int) *tensor.Tensor {
	_, s := r.config.Memory(n)
	return tensor.Wrap(s, m.Bytes()[:s.Bytes()])
}

// remember adds what a layer made of the first n tokens of a pass.
func (r *Reader) remember(m, made *tensor.Tensor, n int) {
	_, row := r.config.Memory(1)
	copy(m.Bytes()[r.length*row.Bytes():], made.Bytes()[:n*row.Bytes()])
}

// pass returns the compiled program of a size.
func (r *Reader) pass(s size) (*pass, error) {
	if p, ok := r.passes[s]; ok {
		return p, nil
	}
	if r.weights == nil {
		return nil, fmt.Errorf("%w: there are none", ErrWeights)
	}
	code, err := model.Extend(r.config, s.tokens, s.past)
	if err != nil {
		return nil, err
	}
	p := &pass{in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}}
	if p.exec, err = program.Compile(code, r.threads); err != nil {
		return nil, err
	}
	for _, in := range code.Inputs() {
		p.in[in.Name] = r.weights[in.Name]
	}
	for name, dims := range map[string][]int{"tokens": {1, s.tokens}, "start": nil, "last": nil} {
		p.in[name] = tensor.New(tensor.Make(tensor.Int32, dims...))
	}
	for _, o := range code.Outputs {
		p.out[o.Name] = tensor.New(code.Ops[o.Value].Out)
	}
	r.passes[s] = p
	return p, nil
}
