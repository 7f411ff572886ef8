// Package slice cuts the parameters of a model into slices of about the same size, so that each slice of the next
// checkpoint can be computed by itself: a Piece is a slice of a compressed update, with a proof that it belongs to the
// worker's commitment; a part is a slice of a checkpoint. The joined parts are the checkpoint that combining whole
// updates gives, bit for bit, for every rule of aggregation that takes the updates coordinate by coordinate.
//
// The package is pure: protocol/run decides which member computes which slice, and network moves the bytes.
package slice

import (
	"errors"
	"fmt"
	"iter"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

var (
	// ErrRule says that a job cannot be reduced in slices, because its rule needs whole updates.
	ErrRule = errors.New("slice: the round looks at whole updates, not at coordinates")
	// ErrMany says that the parameters cannot be cut into as many slices.
	ErrMany = errors.New("slice: more slices than the parameters can be cut into")
	// ErrPiece wraps every reason why bytes are not a piece of the committed update.
	ErrPiece = errors.New("slice: not this piece of the committed update")
	// ErrPart wraps every reason why bytes are not a slice of a checkpoint.
	ErrPart = errors.New("slice: not this slice of a checkpoint")
)

// Range is the elements of one parameter from Lo to before Hi, row-major.
type Range struct{ Parameter, Lo, Hi int }

// Plan says which elements belong to which slice. It is a function of the codec, the shapes and the number of slices:
// slices follow each other in the order of parameters and of their elements, cut where the codec can be cut
// (codec.Alignment).
type Plan struct {
	codec  string
	shapes []tensor.Shape
	slices [][]Range
}

// Check reports why rounds of a job cannot be reduced in slices, however many: an error that wraps ErrRule.
func Check(x train.Exchange) error {
	switch {
	case !aggregate.ByCoordinate(x.Rule):
		return fmt.Errorf("%w: rule %s", ErrRule, x.Rule)
	case x.Replicas(): // what is exchanged is not the same in every round
		return fmt.Errorf("%w: replicas exchange other parts of the parameters in every round", ErrRule)
	case x.Transform != "": // of which a part is made of more than itself
		return fmt.Errorf("%w: transform %s", ErrRule, x.Transform)
	case x.Gradients: // their norm is clipped, and matrices decay
		return fmt.Errorf("%w: outer optimizer %s", ErrRule, x.Outer)
	}
	return nil
}

// NewPlan cuts parameters of these shapes, whose updates are compressed by the named codec, into n slices. More than
// Most gives are ErrMany.
func NewPlan(name string, shapes []tensor.Shape, n int) (*Plan, error) {
	most, err := Most(name, shapes)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > most {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrMany, n, most)
	}
	total := 0
	for _, s := range shapes {
		total += s.Elements()
	}
	p := &Plan{codec: name, shapes: shapes, slices: make([][]Range, n)}
	done, k, left := 0, 0, most
	for g := range grains(name, shapes) {
		// The next slice begins where its share does, or where the grains that are left are only as many as the slices.
		if len(p.slices[k]) > 0 && (done >= (k+1)*total/n || left <= n-k-1) && k < n-1 {
			k++
		}
		p.add(k, g)
		done += g.Hi - g.Lo
		left--
	}
	return p, nil
}

// add puts a grain to a slice, together with the one before it if they are of one parameter.
func (p *Plan) add(k int, g Range) {
	if s := p.slices[k]; len(s) > 0 && s[len(s)-1].Parameter == g.Parameter {
		s[len(s)-1].Hi = g.Hi
		return
	}
	p.slices[k] = append(p.slices[k], g)
}

// Most is into how many slices parameters of these shapes can be cut at most.
func Most(name string, shapes []tensor.Shape) (n int, err error) {
	for _, s := range shapes {
		each, err := codec.Alignment(name, s)
		if err != nil {
			return 0, err
		}
		n += (s.Elements() + each - 1) / each
	}
	return n, nil
}

// grains goes over what is never cut, of shapes that the codec can be cut for.
func grains(name string, shapes []tensor.Shape) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for i, s := range shapes {
			each, err := codec.Alignment(name, s)
			for lo := 0; err == nil && lo < s.Elements(); lo += each {
				if !yield(Range{i, lo, min(lo+each, s.Elements())}) {
					return
				}
			}
		}
	}
}

// Len is the number of slices.
func (p *Plan) Len() int { return len(p.slices) }

// Ranges returns the ranges of a slice, in order. The list belongs to the plan.
func (p *Plan) Ranges(slice int) []Range { return p.slices[slice] }

// Base returns a slice of a checkpoint as one of its own, with a tensor for each of its ranges: what outer.Advance
// takes.
func (p *Plan) Base(c *train.Checkpoint, slice int) *train.Checkpoint {
	sub := &train.Checkpoint{Round: c.Round, Outer: make([][]*tensor.Tensor, len(c.Outer))}
	for _, r := range p.slices[slice] {
		sub.Names = append(sub.Names, c.Names[r.Parameter])
		sub.Params = append(sub.Params, r.of(c.Params[r.Parameter]))
		for k, list := range c.Outer {
			sub.Outer[k] = append(sub.Outer[k], r.of(list[r.Parameter]))
		}
	}
	return sub
}

// of copies a range of a tensor. All of it keeps its shape.
func (r Range) of(t *tensor.Tensor) *tensor.Tensor {
	if r.Lo == 0 && r.Hi == t.Shape.Elements() {
		return t.Clone()
	}
	c := tensor.New(tensor.Make(tensor.Float32, r.Hi-r.Lo))
	copy(c.F32(), t.F32()[r.Lo:r.Hi])
	return c
}
