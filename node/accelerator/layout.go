package accelerator

import (
	"fmt"
	"os"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Layout says where tensors lie in the memory that is shared: both sides make it from the program.
type Layout struct {
	In, Out map[string]Place
	Bytes   int64
}

// Place is a tensor in the memory that is shared.
type Place struct {
	Shape  tensor.Shape
	Offset int64
}

// LayoutOf lays out the inputs and the outputs of a program.
func LayoutOf(p *program.Program) Layout {
	l := Layout{In: map[string]Place{}, Out: map[string]Place{}}
	add := func(s tensor.Shape) Place {
		at := Place{s, l.Bytes}
		l.Bytes += int64(tensor.AlignUp(s.Bytes()))
		return at
	}
	for _, i := range p.Inputs() {
		l.In[i.Name] = add(i.Shape)
	}
	for _, o := range p.Outputs {
		l.Out[o.Name] = add(p.Ops[o.Value].Out)
	}
	return l
}

// Write puts a tensor into its place.
func (at Place) Write(memory *os.File, t *tensor.Tensor) error {
	if !t.Shape.Equal(at.Shape) {
		return fmt.Errorf("a tensor of %s in the place of one of %s", t.Shape, at.Shape)
	}
	_, err := memory.WriteAt(t.Bytes(), at.Offset)
	return err
}

// Read reads a tensor from its place.
func (at Place) Read(memory *os.File, t *tensor.Tensor) error {
	if !t.Shape.Equal(at.Shape) {
		return fmt.Errorf("a tensor of %s from the place of one of %s", t.Shape, at.Shape)
	}
	_, err := memory.ReadAt(t.Bytes(), at.Offset)
	return err
}
