// Package gather lists elements of the operands of an operator: those from which some elements of its output are
// computed, and how to read them from the known leaves of an operand. Package recompute computes the output.
package gather

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// ErrPartial is returned for operands of which less is known than is needed.
var ErrPartial = errors.New("recompute: an operand lacks elements that are needed")

// A Gather is elements of an operand, taken in the order of the runs as a tensor of the given dimensions.
type Gather struct {
	Operand int
	Dims    []int // nil: a list of all, or a scalar of one
	Runs    []Run
	Steps   int // calls that listed the runs, which is more than there are where runs merged
}

// Run is N elements from an index on.
type Run struct{ From, N int }

// One is one run: n elements from an index on.
func One(from, n int) []Run { return []Run{{from, n}} }

// Rows gathers rows from to to of some heads of a tensor [batch, heads, rows, width], or [batch, heads, rows].
func Rows(operand int, s tensor.Shape, batch, head, heads, from, to int) Gather {
	width := view.Elements(s.Dims[3:])
	g := Gather{Operand: operand, Dims: append([]int{1, heads, to - from}, s.Dims[3:]...)}
	for h := range heads {
		g.Add(((batch*s.Dims[1]+head+h)*s.Dims[2]+from)*width, (to-from)*width)
	}
	return g
}

// Add appends n elements from an index on.
func (g *Gather) Add(from, n int) {
	g.Steps++
	if k := len(g.Runs) - 1; k >= 0 && g.Runs[k].From+g.Runs[k].N == from {
		g.Runs[k].N += n
		return
	}
	g.Runs = append(g.Runs, Run{from, n})
}

// Read returns the elements from the known leaves of the operand. Errors wrap ErrPartial.
func (g *Gather) Read(p *tensor.Partial) (*tensor.Tensor, error) {
	n := 0
	for _, r := range g.Runs {
		n += r.N
	}
	dims := g.Dims
	if dims == nil && n != 1 {
		dims = []int{n}
	}
	t := tensor.New(tensor.Make(p.Shape.DType, dims...))
	rest, size := t.Bytes(), p.Shape.DType.Size()
	for _, r := range g.Runs {
		if !p.Read(rest[:r.N*size], r.From) {
			return nil, fmt.Errorf("%w: elements %d to %d of operand %d", ErrPartial, r.From, r.From+r.N, g.Operand)
		}
		rest = rest[r.N*size:]
	}
	return t, nil
}
