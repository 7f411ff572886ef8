package trainer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/web/tinker"
)

// maxPrograms bounds the compiled programs. Their memory is given back after each run.
const maxPrograms = 12

// A key says which program it is.
type key struct {
	model        tinker.Create // without its seed
	numerics     uint32        // version; 0: that in which programs are made
	kind         int
	function     tokenloss.Function
	rows, length int
	adam         optimizer.AdamW
}

// Kinds of programs.
const (
	forward = iota
	backward
	update
)

// compiled is a program that runs.
type compiled struct {
	key     key
	exec    *cpu.Exec
	inputs  []string
	outputs map[string]tensor.Shape
}

// programs are compiled once for each shape.
type programs struct {
	threads  int
	numerics uint32      // version for models without one of their own, as key has it
	list     []*compiled // the latest used last
}

// of returns the program of a key, for the model with the given weights.
func (p *programs) of(k key, w weights) (*compiled, error) {
	k.model, k.numerics = w.create, cmp.Or(w.numerics, p.numerics)
	if i := slices.IndexFunc(p.list, func(c *compiled) bool { return c.key == k }); i >= 0 {
		c := p.list[i]
		p.list = append(slices.Delete(p.list, i, i+1), c)
		return c, nil
	}
	var code *program.Program
	var err error
	switch k.kind {
	case forward:
		code, err = tokenloss.Forward(w.config, k.rows, k.length)
	case backward:
		code, err = tokenloss.Backward(w.config, k.function, k.rows, k.length)
	default:
		code, err = tokenloss.Update(w.config, k.adam)
	}
	if err != nil {
		return nil, err
	}
	if k.numerics > 0 {
		code = code.In(k.numerics)
	}
	c := &compiled{key: k, outputs: map[string]tensor.Shape{}}
	if c.exec, err = cpu.Compile(code, p.threads); err != nil {
		return nil, err
	}
	for _, in := range code.Inputs() {
		c.inputs = append(c.inputs, in.Name)
	}
	for _, o := range code.Outputs {
		c.outputs[o.Name] = code.Ops[o.Value].Out
	}
	if p.list = append(p.list, c); len(p.list) > maxPrograms {
		p.list = p.list[1:]
	}
	return c, nil
}

// run runs a program on tensors of which it takes those that it reads. An output has the memory of the input of its
// name, where that may be.
func (c *compiled) run(given ...map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	in, out := map[string]*tensor.Tensor{}, map[string]*tensor.Tensor{}
	for _, name := range c.inputs {
		for _, from := range given {
			if x, ok := from[name]; ok {
				in[name] = x
			}
		}
	}
	for name, shape := range c.outputs {
		if x, ok := in[name]; ok && c.exec.Shares(name, name) {
			out[name] = x
		} else {
			out[name] = tensor.New(shape)
		}
	}
	defer c.exec.Release()
	return out, c.exec.RunInto(in, out)
}

// prefixed are tensors under a prefix of their names.
func prefixed(prefix string, all map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	out := make(map[string]*tensor.Tensor, len(all))
	for name, x := range all {
		out[prefix+name] = x
	}
	return out
}

// take moves those outputs whose names have a prefix.
func take(prefix string, names map[string]*tensor.Tensor, out map[string]*tensor.Tensor) {
	for name := range maps.Keys(names) {
		names[name] = out[prefix+name]
	}
}
