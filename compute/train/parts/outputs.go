package parts

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// CheckOutputs reports an output that a training step lacks: the next value of each tensor of its state and of those
// that a proximal term reads, its loss and its norm.
func CheckOutputs(p *program.Program) error {
	shapes, outputs := p.InputShapes(), map[string]tensor.Shape{}
	for _, o := range p.Outputs {
		outputs[o.Name] = p.Ops[o.Value].Out
	}
	for _, n := range Params(p) {
		if in, ok := shapes[Anchor+n]; Anchored(p) && (!ok || !in.Equal(shapes[Param+n])) {
			return fmt.Errorf("the program has no input %q like the parameter", Anchor+n)
		}
	}
	for _, n := range StateNames(p) {
		in, out := shapes[n], outputs[n]
		short := (in.DType == tensor.BFloat16 || in.DType == tensor.Int8) && !strings.HasPrefix(n, Param) ||
			in.DType == tensor.Int32 && IsGiven(n)
		if !out.Equal(in) || in.DType != tensor.Float32 && !short {
			return fmt.Errorf("the program does not map %q to itself", n)
		}
	}
	for _, n := range []string{"loss", "grad_norm"} {
		if out, ok := outputs[n]; !ok || !out.Equal(tensor.Shape{DType: tensor.Float32}) {
			return fmt.Errorf("the program has no scalar output %q", n)
		}
	}
	return nil
}
