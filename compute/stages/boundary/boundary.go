// Package boundary makes the values that stages exchange smaller: by operators that it adds to a step before the step
// is cut. Both neighbours compute them like any other, so a false code is disputed like any other work, and the step in
// stages has the bits of the step with these operators in one program.
//
// The gradient of a value that was made smaller is taken as that of the value (a straight-through estimate).
package boundary

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrScheme is wrapped by every reason why a scheme cannot be applied.
var ErrScheme = errors.New("boundary: this scheme cannot be applied")

// Scheme says how values between neighbouring stages are sent, of rows [rows, width] of float32: one row a token. The
// zero value sends them as they are.
type Scheme struct {
	// Bits is 4: each block of a row is rotated by a Hadamard matrix, and sent as codes of 4 bits with a scale in
	// bfloat16. TAH-Quant (He et al. 2025, arXiv 2506.01352) rotates tokens with outliers; here all are.
	Bits int
	// Columns is how many columns are sent, in bfloat16: those with the largest sum of squares over the rows of the
	// microbatch. The others are zero, and so are they in the gradient, which has the same columns.
	Columns int
}

// Bytes are those that a microbatch sends forward over one boundary, and back.
func (s Scheme) Bytes(rows, width int) (forward, back int) {
	switch {
	case s.Bits > 0:
		n := rows*width/2 + 2*rows*width/block(width)
		return n, n
	case s.Columns > 0:
		return 2*rows*s.Columns + width/8, 2 * rows * s.Columns
	}
	return 4 * rows * width, 4 * rows * width
}

// check reports a width that a scheme does not fit.
func (s Scheme) check(width int) error {
	switch {
	case s.Bits != 0 && s.Columns != 0 || s.Bits != 0 && s.Bits != 4 || s.Columns < 0:
		return fmt.Errorf("%w: %d bits and %d columns, wanted 4 bits or a number of columns", ErrScheme, s.Bits, s.Columns)
	case s.Bits > 0 && block(width) == 0:
		return fmt.Errorf("%w: 4 bits of a width of %d, which no power of 4 divides", ErrScheme, width)
	case s.Columns > width || s.Columns > 0 && width%8 > 0:
		return fmt.Errorf("%w: %d columns of %d, wanted at most all, of a multiple of 8", ErrScheme, s.Columns, width)
	}
	return nil
}

// block is the largest power of 4, up to 64, that divides a width; 0: none but 1.
func block(width int) int {
	for _, b := range []int{64, 16, 4} {
		if width%b == 0 {
			return b
		}
	}
	return 0
}

// place is a boundary of one microbatch: before a stage.
type place struct{ stage, micro int }

// rewriting is a program while operators are added to it.
type rewriting struct {
	coder
	p       *program.Program
	plan    *stages.Plan
	to      []program.Value           // by value of p
	other   map[int32]program.Value   // by value of p: what the stage that receives it reads in its place
	sent    map[int32]stages.Transfer // values that are sent smaller
	columns map[place]columns         // that were chosen
}

// Compress returns a step whose values between neighbouring stages are sent by a scheme, if it is cut before the given
// groups: it is to be cut before the same.
func Compress(p *program.Program, before []int, s Scheme) (*program.Program, error) {
	if s == (Scheme{}) {
		return p, nil
	}
	plan, err := stages.Cut(p, before)
	if err != nil {
		return nil, err
	}
	r := &rewriting{coder: coder{b: program.NewBuilder()}, p: p, plan: plan, to: make([]program.Value, len(p.Ops)),
		other: map[int32]program.Value{}, sent: map[int32]stages.Transfer{}, columns: map[place]columns{}}
	if err := r.find(s); err != nil {
		return nil, err
	}
	for i, op := range p.Ops {
		op.In = slices.Clone(op.In)
		for k, v := range op.In {
			op.In[k] = int32(r.operand(i, v))
		}
		r.to[i] = r.keep(r.b.Append(op))
		if t, ok := r.sent[int32(i)]; ok && r.err == nil {
			r.other[int32(i)] = r.send(t, s)
		}
	}
	names := make([]string, len(p.Outputs))
	for i, o := range p.Outputs {
		names[i] = o.Name
		r.b.Output(o.Name, r.to[o.Value])
	}
	if r.err != nil {
		return nil, r.err
	}
	out, err := r.b.Finish()
	if err != nil {
		return nil, err
	}
	return out.In(p.Numerics).Only(names...), nil
}

// find finds the values that are sent smaller: of each microbatch the one that passes forward to the next stage, and
// the one of its shape that comes back.
func (r *rewriting) find(s Scheme) error {
	forward, back := map[place][]stages.Transfer{}, map[place][]stages.Transfer{}
	for _, t := range r.plan.Transfers {
		switch wide := t.Shape.DType == tensor.Float32 && t.Shape.Rank() == 2; {
		case wide && t.After.Phase == order.Forward && t.To == t.From+1:
			at := place{t.To, t.After.Number}
			forward[at] = append(forward[at], t)
		case wide && t.After.Phase == order.Backward && t.From == t.To+1:
			at := place{t.From, t.After.Number}
			back[at] = append(back[at], t)
		}
	}
	for _, t := range r.plan.Transfers {
		at := place{t.To, t.After.Number}
		list := forward[at]
		if !slices.ContainsFunc(list, func(f stages.Transfer) bool { return f.Value == t.Value && f.To == t.To }) {
			continue
		}
		same := slices.DeleteFunc(back[at], func(t stages.Transfer) bool { return !t.Shape.Equal(list[0].Shape) })
		if len(list) > 1 || len(same) > 1 {
			return fmt.Errorf("%w: %d values of a microbatch pass to stage %d, and %d of their shape come back, wanted one",
				ErrScheme, len(list), at.stage, len(same))
		}
		if err := s.check(list[0].Shape.Dims[1]); err != nil {
			return err
		}
		for _, t := range append(list, same...) {
			r.sent[t.Value] = t
		}
	}
	return nil
}

// operand is an operand of operator i: in the stage that receives a value, the one that was sent smaller.
func (r *rewriting) operand(i int, v int32) program.Value {
	base := stages.Base(r.p, v)
	t, ok := r.sent[base]
	if !ok || r.plan.At[i].Stage != t.To || stages.Base(r.p, int32(i)) == base {
		return r.to[v]
	}
	if other, ok := r.other[v]; ok {
		return other
	}
	view := r.p.Ops[v]
	view.In = []int32{int32(r.operand(i, view.In[0]))}
	r.other[v] = r.keep(r.b.Append(view))
	return r.other[v]
}

// send adds what makes a value smaller, and what makes it again in the stage that receives it.
func (r *rewriting) send(t stages.Transfer, s Scheme) program.Value {
	x, back := r.to[t.Value], t.After.Phase == order.Backward
	if s.Bits > 0 {
		codes, scale := r.encode(x, block(t.Shape.Dims[1]))
		return r.decode(r.crossing(codes, back), r.crossing(scale, back), t.Shape.Dims)
	}
	if back {
		at := r.columns[place{t.From, t.After.Number}]
		return r.spread(r.crossing(r.gather(x, at.received), true), at.chosen)
	}
	var at columns
	mask := r.choose(x, s.Columns)
	at.chosen = r.selection(mask, s.Columns)
	bits := r.pack(mask)
	kept := r.gather(x, at.chosen)
	at.received = r.selection(r.unpack(bits), s.Columns)
	r.columns[place{t.To, t.After.Number}] = at
	return r.spread(kept, at.received)
}

// crossing marks a value of a backward that the stage before reads: stages.Cut places an Identity of a gradient there.
func (r *rewriting) crossing(v program.Value, back bool) program.Value {
	if !back {
		return v
	}
	return r.apply(program.Identity, v)
}
