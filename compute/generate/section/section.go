package section

import (
	"fmt"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/forward"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// Row is one sequence in a pass.
type Row struct {
	ID    uint64 // of the sequence, as the front calls it
	Start int    // tokens before the pass
	Count int    // tokens of the pass
	Limit int    // tokens that the sequence may have
}

// Pass continues sequences: one by a piece, or each of many by one token.
type Pass struct {
	Piece  bool
	Rows   []Row
	Hidden []float32 // [tokens of all rows, width], one row after the other
}

// Tokens is the number of tokens of all rows.
func (p Pass) Tokens() (n int) {
	for _, r := range p.Rows {
		n += r.Count
	}
	return n
}

// MaxRows is the number of sequences in a pass.
const MaxRows = 256

// Check compares a pass with the model. The error wraps ErrPass.
func (l Layout) Check(p Pass) error {
	longest := 1
	if p.Piece {
		longest = min(Piece, l.Config.Context())
	}
	if len(p.Rows) < 1 || len(p.Rows) > MaxRows || p.Piece && len(p.Rows) > 1 {
		return fmt.Errorf("%w: %d sequences", ErrPass, len(p.Rows))
	}
	seen := map[uint64]bool{}
	past := l.past(p)
	for _, r := range p.Rows {
		switch {
		case r.Limit < 1 || r.Limit > l.Config.Context() || r.Count < 1 || r.Count > longest || r.Start < 0 ||
			r.Start > r.Limit-r.Count:
			return fmt.Errorf("%w: %d tokens after %d, of %d", ErrPass, r.Count, r.Start, r.Limit)
		case seen[r.ID]:
			return fmt.Errorf("%w: sequence %d occurs twice", ErrPass, r.ID)
		case past > l.Rounded(r.Limit):
			return fmt.Errorf("%w: sequence %d of at most %d tokens with one that remembers %d", ErrPass, r.ID, r.Limit, past)
		}
		seen[r.ID] = true
	}
	return nil
}

// past is the memory, in tokens, that all sequences of a pass have in its program.
func (l Layout) past(p Pass) (n int) {
	for _, r := range p.Rows {
		n = max(n, l.Rounded(max(r.Start, 1)))
	}
	return n
}

// Section computes a part of a model. It is for one goroutine at a time.
type Section struct {
	Layout
	part    int // of the cut: 0, a stage, or the last
	threads int
	weights map[string]*tensor.Tensor // by the names of inputs
	passes  map[size]*pass
	idle    map[int]*tensor.Tensor // memory that fills up a pass, by its tokens
	memory  map[uint64]*memory
}

// memory is what a section remembers of a sequence.
type memory struct {
	tensors []*tensor.Tensor // keys and values of the layers, in turn: [room, kvHeads, headDim]
	room    int              // tokens
	length  int              // tokens read
	limit   int
}

// size is that of a program.
type size struct{ sequences, tokens, past int }

// pass is a program with its inputs and outputs.
type pass struct {
	exec    *cpu.Exec
	in, out map[string]*tensor.Tensor
}

// New returns the section of a stage, of which it gets the tensors by their names. They are read, and not copied.
func New(l Layout, stage int, tensors map[string]*tensor.Tensor, threads int) (*Section, error) {
	if stage < 1 || stage > l.Stages {
		return nil, fmt.Errorf("%w: stage %d of %d", ErrLayout, stage, l.Stages)
	}
	return newSection(l, stage, stage, tensors, threads)
}

// Ends returns the sections of the front: before the first layer, and after the last one.
func Ends(l Layout, tensors map[string]*tensor.Tensor, threads int) (before, after *Section, err error) {
	if before, err = newSection(l, 0, Front, tensors, threads); err == nil {
		after, err = newSection(l, l.Stages+1, Front, tensors, threads)
	}
	return before, after, err
}

func newSection(l Layout, part, holder int, tensors map[string]*tensor.Tensor, threads int) (*Section, error) {
	s := &Section{Layout: l, part: part, threads: threads, weights: map[string]*tensor.Tensor{}, passes: map[size]*pass{},
		idle: map[int]*tensor.Tensor{}, memory: map[uint64]*memory{}}
	for _, n := range l.Tensors(holder) {
		t := tensors[n.Name]
		if t == nil || !t.Shape.Equal(n.Shape) {
			return nil, fmt.Errorf("%w: no tensor %q of shape %v", ErrLayout, n.Name, n.Shape)
		}
		s.weights[parts.Param+n.Name] = t
	}
	return s, nil
}

// layers are those of the section; none of the front.
func (s *Section) layers() (from, to int) {
	if s.part == 0 || s.part > s.Stages {
		return 0, 0
	}
	return s.Layers(s.part)
}

// Memory is the number of bytes that the keys and values of the sequences for which of is true may take.
func (s *Section) Memory(of func(id uint64) bool) (n int64) {
	for id, m := range s.memory {
		if of(id) {
			n += s.Bytes(s.part, m.limit)
		}
	}
	return n
}

// End forgets a sequence.
func (s *Section) End(id uint64) { delete(s.memory, id) }

// Run continues sequences, and returns the hidden state after the layers for each token: [tokens, width]. A row with
// Start 0 begins a sequence, and forgets another of this number. The error wraps ErrPass for a pass that does not
// continue the sequences as they are; nothing was read then.
func (s *Section) Run(p Pass) ([]float32, error) {
	if err := s.Check(p); err != nil {
		return nil, err
	}
	width := s.Config.Width
	if len(p.Hidden) != p.Tokens()*width {
		return nil, fmt.Errorf("%w: %d values for %d tokens of %d", ErrPass, len(p.Hidden), p.Tokens(), width)
	}
	for _, r := range p.Rows {
		if m := s.memory[r.ID]; r.Start > 0 && (m == nil || m.length != r.Start || m.limit != r.Limit) {
			return nil, fmt.Errorf("%w: sequence %d has not %d tokens here", ErrPass, r.ID, r.Start)
		}
	}
	run, z, err := s.prepare(p)
	if err != nil {
		return nil, err
	}
	in, rest := run.in[forward.Hidden].F32(), p.Hidden
	clear(in)
	for j, r := range p.Rows {
		n := r.Count * width
		copy(in[j*z.tokens*width:], rest[:n])
		rest = rest[n:]
	}
	from, to := s.layers()
	for j := range z.sequences {
		var m *memory // nil fills up
		if j < len(p.Rows) {
			m = s.begun(p.Rows[j], z.past)
		}
		for i := range to - from {
			run.in[model.KeysName(from+i, j)] = s.first(m, 2*i, z.past)
			run.in[model.ValuesName(from+i, j)] = s.first(m, 2*i+1, z.past)
		}
	}
	if err := run.exec.RunInto(run.in, run.out); err != nil {
		return nil, err
	}
	var hidden []float32
	for j, r := range p.Rows {
		m := s.memory[r.ID]
		for i := range to - from {
			s.remember(m, 2*i, run.out[model.KeysName(from+i, j)], r.Count)
			s.remember(m, 2*i+1, run.out[model.ValuesName(from+i, j)], r.Count)
		}
		m.length += r.Count
		hidden = append(hidden, run.out[forward.Hidden].F32()[j*z.tokens*width:][:r.Count*width]...)
	}
	return hidden, nil
}

// Embed is Run of the front before the layers, for the tokens of each row.
func (s *Section) Embed(p Pass, tokens [][]int32) ([]float32, error) {
	if err := s.Check(p); err != nil {
		return nil, err
	}
	run, z, err := s.prepare(p)
	if err != nil {
		return nil, err
	}
	in := run.in["tokens"].I32()
	clear(in)
	for j := range p.Rows {
		copy(in[j*z.tokens:], tokens[j])
	}
	if err := run.exec.RunInto(run.in, run.out); err != nil {
		return nil, err
	}
	var hidden []float32
	width := s.Config.Width
	for j, r := range p.Rows {
		hidden = append(hidden, run.out[forward.Hidden].F32()[j*z.tokens*width:][:r.Count*width]...)
	}
	return hidden, nil
}

// Logits are those after the last token of each row, of which p.Hidden has the hidden state after all layers: [rows,
// width]. They are valid until the next call.
func (s *Section) Logits(p Pass) ([]float32, error) {
	if err := s.Check(p); err != nil {
		return nil, err
	}
	width := s.Config.Width
	if len(p.Hidden) != len(p.Rows)*width {
		return nil, fmt.Errorf("%w: %d values for %d sequences of %d", ErrPass, len(p.Hidden), len(p.Rows), width)
	}
	run, z, err := s.prepare(p)
	if err != nil {
		return nil, err
	}
	in := run.in[forward.Hidden].F32()
	clear(in)
	for j, r := range p.Rows {
		copy(in[(j*z.tokens+r.Count-1)*width:][:width], p.Hidden[j*width:])
	}
	if err := run.exec.RunInto(run.in, run.out); err != nil {
		return nil, err
	}
	return run.out["logits"].F32(), nil
}

// size is that of the program of a pass.
func (s *Section) size(p Pass) size {
	z := size{sequences: 1, tokens: 1, past: s.past(p)}
	if p.Piece {
		z.tokens = min(Piece, s.Config.Context())
	}
	for z.sequences < len(p.Rows) {
		z.sequences *= 2
	}
	return z
}

// prepare returns the program of a pass, with the places of its tokens, and its size.
func (s *Section) prepare(p Pass) (*pass, size, error) {
	z := s.size(p)
	run, err := s.program(z)
	if err != nil {
		return nil, z, err
	}
	for name, of := range map[string]func(Row) int{"start": func(r Row) int { return r.Start },
		"last": func(r Row) int { return r.Count - 1 }} {
		if t := run.in[name]; t != nil {
			clear(t.I32())
			for j, r := range p.Rows {
				t.I32()[j] = int32(of(r))
			}
		}
	}
	return run, z, nil
}

// program returns the compiled program of a size.
func (s *Section) program(z size) (*pass, error) {
	if p := s.passes[z]; p != nil {
		return p, nil
	}
	list, err := s.programs(z)
	if err != nil {
		return nil, err
	}
	code := list[s.part]
	for _, in := range code.Inputs() {
		if n := z.sequences * z.tokens * s.Config.Width; in.Name == forward.Hidden && in.Shape.Elements() != n {
			return nil, fmt.Errorf("%w: %v values go between parts, and not %d", ErrLayout, in.Shape, n)
		}
	}
	p := &pass{in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}}
	if p.exec, err = cpu.Compile(code, s.threads); err != nil {
		return nil, err
	}
	for _, in := range code.Inputs() {
		if p.in[in.Name] = s.weights[in.Name]; p.in[in.Name] == nil {
			p.in[in.Name] = s.input0(in)
		}
	}
	for _, o := range code.Outputs {
		p.out[o.Name] = tensor.New(code.Ops[o.Value].Out)
	}
	s.passes[z] = p
	return p, nil
}

// input0 makes an input that is no weight; keys and values are bound when they are read.
func (s *Section) input0(in program.InputInfo) *tensor.Tensor {
	if s.input(in.Name) > 0 {
		return nil
	}
	return tensor.New(in.Shape)
}

// begun is the memory of a row, with room for the tokens of a program and for its own.
func (s *Section) begun(r Row, past int) *memory {
	m := s.memory[r.ID]
	if r.Start == 0 {
		m = &memory{limit: r.Limit}
		s.memory[r.ID] = m
	}
	from, to := s.layers()
	if n := max(past, r.Start+r.Count); n > m.room {
		m.room = s.Rounded(n)
		_, shape := model.Memory(s.Config, m.room)
		old := m.tensors
		m.tensors = make([]*tensor.Tensor, 2*(to-from))
		for i := range m.tensors {
			m.tensors[i] = tensor.New(shape)
			if old != nil {
				copy(m.tensors[i].Bytes(), old[i].Bytes())
			}
		}
	}
	return m
}

// first is one memory of the first n tokens of a sequence, or of nil.
func (s *Section) first(m *memory, i, n int) *tensor.Tensor {
	_, shape := model.Memory(s.Config, n)
	if m == nil {
		if s.idle[n] == nil {
			s.idle[n] = tensor.New(shape)
		}
		return s.idle[n]
	}
	return tensor.Wrap(shape, m.tensors[i].Bytes()[:shape.Bytes()])
}

// remember adds what a layer made of the first n tokens of a pass.
func (s *Section) remember(m *memory, i int, made *tensor.Tensor, n int) {
	_, row := model.Memory(s.Config, 1)
	copy(m.tensors[i].Bytes()[m.length*row.Bytes():], made.Bytes()[:n*row.Bytes()])
}

// Last is the hidden state after the last token of each row: [rows, width], of hidden [tokens, width].
func Last(p Pass, hidden []float32) (last []float32) {
	width, at := len(hidden)/p.Tokens(), 0
	for _, r := range p.Rows {
		at += r.Count
		last = append(last, hidden[(at-1)*width:at*width]...)
	}
	return last
}
