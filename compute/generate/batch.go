package generate

import (
	"fmt"
	"reflect"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/adapter"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

const piece = section.Piece // tokens of one sequence that are read at once

// Batch reads sequences of tokens, a piece of one or a token of each of many at a time, with the weights of one model
// and, if a sequence has them, the adapters of its own. Its results for a sequence do not depend on the other
// sequences, to the last bit. It is for one goroutine at a time.
type Batch struct {
	base     architecture.Config
	config   architecture.Config // with room for every adapter
	threads  int
	weights  map[string]*tensor.Tensor // by the names of inputs
	adapters []fitted                  // the first is none: zeros
	passes   map[size]*pass
	idle     map[int]*tensor.Tensor // memory that fills up a batch, by its tokens
	rows     [][]float32            // logits of Next
}

// Adapter is a low-rank adapter of a model.
type Adapter struct {
	Config  architecture.Config       // the model, adapted
	Tensors map[string]*tensor.Tensor // by the names of Config.Adapters; nil: Load gives them
}

// fitted is an adapter as a program takes it.
type fitted struct {
	config  architecture.Config
	tensors map[string]*tensor.Tensor // nil: they are not in memory
	scale   *tensor.Tensor
}

// A size of a pass: how many sequences it reads, how many tokens of each, how many before them it can remember, and
// whether it computes the logits after every token, or after the last of each sequence.
type size struct {
	sequences, tokens, past int
	every                   bool
}

// A pass is a compiled model.Extend with its inputs and outputs.
type pass struct {
	exec    *cpu.Exec
	in, out map[string]*tensor.Tensor
}

// NewBatch returns a batch without weights that computes on up to the given number of threads.
func NewBatch(c architecture.Config, threads int) *Batch { return &Batch{base: c, threads: threads} }

// SetWeights gives the batch the tensors of a model by their Hugging Face names, which it reads but does not copy, and
// adapters, which share them and which sequences choose by their number from 1 on. Sequences made before must not be
// read any more. The error wraps ErrWeights.
func (b *Batch) SetWeights(tensors map[string]*tensor.Tensor, adapters ...Adapter) error {
	weights := map[string]*tensor.Tensor{}
	for _, t := range b.base.Tensors() {
		w, ok := tensors[t.Name]
		if !ok || !w.Shape.Equal(t.Shape) {
			return fmt.Errorf("%w: no tensor %q of shape %v", ErrWeights, t.Name, t.Shape)
		}
		weights[train.Param+t.Name] = w
	}
	configs := []architecture.Config{b.base}
	for _, a := range adapters {
		configs = append(configs, a.Config)
	}
	cover, err := adapter.Cover(b.base, configs)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWeights, err)
	}
	all := make([]fitted, len(configs))
	for i, c := range configs {
		var own map[string]*tensor.Tensor
		if i > 0 {
			own = adapters[i-1].Tensors
		}
		all[i] = fitted{config: c, scale: tensor.FromF32([]float32{float32(c.Scale())})}
		if i > 0 && own == nil {
			continue
		}
		if all[i].tensors, err = adapter.Widen(cover, c, own); err != nil {
			return fmt.Errorf("%w: %w", ErrWeights, err)
		}
	}
	if !reflect.DeepEqual(b.config, cover) {
		b.passes, b.idle = map[size]*pass{}, map[int]*tensor.Tensor{}
	}
	b.config, b.weights, b.adapters = cover, weights, all
	for _, p := range b.passes { // compiled for the same model
		for name := range p.in {
			if w, ok := weights[name]; ok {
				p.in[name] = w
			}
		}
	}
	return nil
}

// Load gives an adapter its tensors, and Unload takes them: no sequence that is read then may have the adapter. The
// error wraps ErrWeights.
func (b *Batch) Load(number int, tensors map[string]*tensor.Tensor) error {
	wide, err := adapter.Widen(b.config, b.adapters[number].config, tensors)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWeights, err)
	}
	b.adapters[number].tensors = wide
	return nil
}

// Unload takes the tensors of an adapter, so that they need no memory: programs have zeros in their place.
func (b *Batch) Unload(number int) {
	own, zeros := b.adapters[number].tensors, b.adapters[0].tensors
	for z, p := range b.passes {
		for name := range own {
			for j := range z.sequences {
				if at := model.AdapterName(j, name); p.in[at] == own[name] {
					p.in[at] = zeros[name]
				}
			}
		}
	}
	b.adapters[number].tensors = nil
}

// AdapterBytes is the memory that the tensors of an adapter take: as many as those of each other.
func (b *Batch) AdapterBytes() (n int64) {
	for _, a := range b.config.Adapters() {
		n += int64(a.Shape.Bytes())
	}
	return n
}

// Context is the number of tokens that a sequence may have.
func (b *Batch) Context() int { return b.base.Context() }

// Sequence holds the keys and values of the tokens that a batch has read.
type Sequence struct {
	memory  []*tensor.Tensor // keys and values of the layers, in turn: [room, kvHeads, headDim]
	room    int              // tokens
	length  int              // tokens read
	limit   int              // tokens that may be read
	vocab   int              // ids of tokens
	adapter int

	mixed *mixed // of a Mixture, which has nothing of the above but vocab, length and limit
	id    uint64 // of a Pipeline, which has nothing else but these either
}

// End does nothing: a sequence that is not read any more has no memory elsewhere.
func (b *Batch) End(*Sequence) {}

// Len is the number of tokens read.
func (s *Sequence) Len() int { return s.length }

// Sequence begins a sequence of at most limit tokens, read with the adapter of the given number, or without one for 0;
// nil if there is no such adapter, or its tensors are not loaded. Its memory grows with it, to at most Memory(limit).
func (b *Batch) Sequence(limit, adapter int) *Sequence {
	if adapter < 0 || adapter >= max(1, len(b.adapters)) || adapter > 0 && b.adapters[adapter].tensors == nil {
		return nil
	}
	return &Sequence{limit: min(limit, b.Context()), vocab: b.base.VocabSize(), adapter: adapter}
}

// Memory is the number of bytes that the keys and values of a sequence of at most limit tokens take, at most.
func (b *Batch) Memory(limit int) int64 {
	layers, s := model.Memory(b.base, b.rounded(min(limit, b.Context())))
	return 2 * int64(layers) * int64(s.Bytes())
}

// Read continues a sequence by at least one token and returns the logits that follow the last one [vocab], valid until
// the next call. The error wraps ErrContext, if the sequence became too long, ErrToken or ErrNumbers; after the first
// two nothing was read.
//
// The bits of the logits depend on the pieces in which a sequence is read, which are cut from the beginning of tokens.
func (b *Batch) Read(s *Sequence, tokens []int32) ([]float32, error) {
	if err := b.check(s, tokens); err != nil {
		return nil, err
	}
	var logits []float32
	for len(tokens) > 0 {
		all, n, err := b.readPiece(s, tokens, false)
		if err != nil {
			return nil, err
		}
		logits, tokens = all, tokens[n:]
	}
	return logits, Finite(logits)
}

// readPiece reads the first n tokens and returns the logits after the last of them, or after every one: [n, vocab].
func (b *Batch) readPiece(s *Sequence, tokens []int32, every bool) (logits []float32, n int, err error) {
	z := size{sequences: 1, tokens: 1, past: b.need(s), every: every}
	if len(tokens) > 1 {
		z.tokens = min(piece, b.Context())
	}
	n = min(z.tokens, len(tokens))
	logits, err = b.run(z, []*Sequence{s}, [][]int32{tokens[:n]})
	if every && err == nil {
		logits = logits[:n*b.base.VocabSize()]
	}
	return logits, n, err
}

// Next continues each sequence by one token and returns the logits that follow each [vocab], valid until the next call.
// No sequence may occur twice. The error wraps ErrContext or ErrToken, and then nothing was read. Whether the logits
// are finite, Finite tells: those of one sequence say nothing about the others.
func (b *Batch) Next(all []*Sequence, tokens []int32) ([][]float32, error) {
	for i, s := range all {
		if err := b.check(s, tokens[i:i+1]); err != nil {
			return nil, err
		}
	}
	for len(b.rows) < len(all) {
		b.rows = append(b.rows, make([]float32, b.base.VocabSize()))
	}
	for _, group := range groups(all, b.rounded) {
		z := size{sequences: 1, tokens: 1}
		for z.sequences < len(group) {
			z.sequences *= 2
		}
		var members []*Sequence
		var next [][]int32
		for _, i := range group {
			members, next = append(members, all[i]), append(next, tokens[i:i+1])
			z.past = max(z.past, b.need(all[i]))
		}
		logits, err := b.run(z, members, next)
		if err != nil {
			return nil, err
		}
		for k, i := range group {
			copy(b.rows[i], logits[k*b.base.VocabSize():])
		}
	}
	return b.rows[:len(all)], nil
}

// groups deals the sequences into those that are read together: all of a group have room for what the longest
// remembers.
func groups(all []*Sequence, rounded func(tokens int) int) (groups [][]int) {
	rest := make([]int, len(all))
	for i := range rest {
		rest[i] = i
	}
	for len(rest) > 0 {
		past := 0
		for _, i := range rest {
			past = max(past, rounded(max(all[i].length, 1)))
		}
		var group, others []int
		for _, i := range rest {
			if rounded(all[i].limit) >= past {
				group = append(group, i)
			} else {
				others = append(others, i)
			}
		}
		groups, rest = append(groups, group), others
	}
	return groups
}

func (b *Batch) check(s *Sequence, tokens []int32) error {
	if b.weights == nil {
		return fmt.Errorf("%w: there are none", ErrWeights)
	}
	return s.check(tokens)
}

// check reports tokens by which the sequence cannot be continued.
func (s *Sequence) check(tokens []int32) error {
	if len(tokens) == 0 {
		return fmt.Errorf("%w: none is given", ErrToken)
	}
	if s.length+len(tokens) > s.limit {
		return fmt.Errorf("%w: %d after %d, it holds %d", ErrContext, len(tokens), s.length, s.limit)
	}
	for _, id := range tokens {
		if id < 0 || int(id) >= s.vocab {
			return fmt.Errorf("%w: %d, it has %d", ErrToken, id, s.vocab)
		}
	}
	return nil
}

// Finite reports logits of which one is no finite number, by an error that wraps ErrNumbers.
func Finite(logits []float32) error {
	for i, x := range logits {
		if d := x - x; d != 0 { // NaN or an infinity
			return fmt.Errorf("%w: %v for token %d", ErrNumbers, x, i)
		}
	}
	return nil
}

// run reads the tokens of each sequence, at most as many as the size has, and returns the logits [sequences, vocab], or
// [sequences * tokens, vocab] after every token.
func (b *Batch) run(z size, all []*Sequence, tokens [][]int32) ([]float32, error) {
	p, err := b.pass(z)
	if err != nil {
		return nil, err
	}
	layers, _ := model.Memory(b.base, 1)
	clear(p.in["tokens"].I32())
	clear(p.in["start"].I32())
	last := p.in["last"]
	if last != nil {
		clear(last.I32())
	}
	for j := range z.sequences {
		var s *Sequence // nil fills up
		adapter := 0
		if j < len(all) {
			s = all[j]
			b.grow(s, max(z.past, s.length+len(tokens[j])))
			copy(p.in["tokens"].I32()[j*z.tokens:], tokens[j])
			p.in["start"].I32()[j] = int32(s.length)
			if last != nil {
				last.I32()[j] = int32(len(tokens[j]) - 1)
			}
			adapter = s.adapter
		}
		for i := range layers {
			p.in[model.KeysName(i, j)] = b.first(s, 2*i, z.past)
			p.in[model.ValuesName(i, j)] = b.first(s, 2*i+1, z.past)
		}
		b.adapt(p, j, adapter)
	}
	if err := p.exec.RunInto(p.in, p.out); err != nil {
		return nil, err
	}
	for j, s := range all {
		for i := range layers {
			b.remember(s, 2*i, p.out[model.KeysName(i, j)], len(tokens[j]))
			b.remember(s, 2*i+1, p.out[model.ValuesName(i, j)], len(tokens[j]))
		}
		s.length += len(tokens[j])
	}
	return p.out["logits"].F32(), nil
}

// adapt gives a pass the adapter of a sequence.
func (b *Batch) adapt(p *pass, sequence, adapter int) {
	adapters := b.config.Adapters()
	if len(adapters) == 0 {
		return
	}
	p.in[model.ScaleName(sequence)] = b.adapters[adapter].scale
	for _, n := range adapters {
		p.in[model.AdapterName(sequence, n.Name)] = b.adapters[adapter].tensors[n.Name]
	}
}

// need is the size of memory that a sequence's tokens need.
func (b *Batch) need(s *Sequence) int { return b.rounded(max(s.length, 1)) }

// rounded is the size of memory for n tokens: sizes double, so that there are few programs.
func (b *Batch) rounded(n int) int { return section.Rounded(b.base, n) }

// grow makes room for n tokens.
func (b *Batch) grow(s *Sequence, n int) {
	if n <= s.room {
		return
	}
	s.room = b.rounded(n)
	layers, shape := model.Memory(b.base, s.room)
	old := s.memory
	s.memory = make([]*tensor.Tensor, 2*layers)
	for i := range s.memory {
		s.memory[i] = tensor.New(shape)
		if old != nil {
			copy(s.memory[i].Bytes(), old[i].Bytes())
		}
	}
}

// first is one memory of the first n tokens of a sequence, or of nil.
func (b *Batch) first(s *Sequence, i, n int) *tensor.Tensor {
	_, shape := model.Memory(b.base, n)
	if s == nil {
		if b.idle[n] == nil {
			b.idle[n] = tensor.New(shape)
		}
		return b.idle[n]
	}
	return tensor.Wrap(shape, s.memory[i].Bytes()[:shape.Bytes()])
}

// remember adds what a layer made of the first n tokens of a pass.
func (b *Batch) remember(s *Sequence, i int, made *tensor.Tensor, n int) {
	_, row := model.Memory(b.base, 1)
	copy(s.memory[i].Bytes()[s.length*row.Bytes():], made.Bytes()[:n*row.Bytes()])
}

// pass returns the compiled program of a size.
func (b *Batch) pass(z size) (*pass, error) {
	if p, ok := b.passes[z]; ok {
		return p, nil
	}
	code, err := model.Extend(b.config, z.sequences, z.tokens, z.past, z.every)
	if err != nil {
		return nil, err
	}
	p := &pass{in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}}
	if p.exec, err = cpu.Compile(code, b.threads); err != nil {
		return nil, err
	}
	for _, in := range code.Inputs() {
		p.in[in.Name] = b.weights[in.Name]
	}
	p.in["tokens"] = tensor.New(tensor.Make(tensor.Int32, z.sequences, z.tokens))
	p.in["start"] = tensor.New(tensor.Make(tensor.Int32, z.sequences))
	if !z.every {
		p.in["last"] = tensor.New(tensor.Make(tensor.Int32, z.sequences))
	}
	for _, o := range code.Outputs {
		p.out[o.Name] = tensor.New(code.Ops[o.Value].Out)
	}
	b.passes[z] = p
	return p, nil
}
