// Package parts names the inputs and outputs of the program of a training step: parameters, the other tensors of the
// state of a unit, and the tensors that are read alone. It divides the program of a job whose answers are drawn apart
// into the part that learns and the part that draws, and says which unit draws the answers of which step.
package parts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/replica"
)

// Param is the prefix of the names of parameters, in the state and among the inputs of a step.
const Param = "p/"

// memories are the prefixes of the names of the state besides the parameters: an optimizer's of a parameter, which is
// moments, or factored moments of the rows and columns of a matrix; the parameters before the last updates; answers
// that are given, or drawn; and values that stages of a model have exchanged in a step.
var memories = []string{"m/", "v/", "r/", "s/", optimizer.Earlier, given, executed, handed, Exchanged}

// Prefixes of names in the program of a stage of a model, see package stages.
const (
	Received  = "g/" // inputs that another stage has sent in the step
	Exchanged = "x/" // of the state: what the stage has received and sent in the step before
)

// IsExchanged reports whether a tensor of a state is a value that a stage has received or sent.
func IsExchanged(name string) bool { return strings.HasPrefix(name, Exchanged) }

// Anchor is the prefix of the names of the parameters that a unit began with, which a program with a proximal term
// reads.
const Anchor = "b/"

// Params returns the names of a training step's parameters, in the order of its inputs.
func Params(p *program.Program) []string { return tensors(p, true) }

// StateNames returns the names of the tensors of an inner state, in the order in which StateRoot takes them: all
// parameters, then the moments, in the order of the step's inputs.
func StateNames(p *program.Program) (names []string) {
	for _, n := range Params(p) {
		names = append(names, Param+n)
	}
	return append(names, Moments(p)...)
}

// Moments returns the names of the optimizer's state in a training step, in the order of the program's inputs.
func Moments(p *program.Program) (names []string) {
	for _, in := range p.Inputs() {
		if slices.ContainsFunc(memories, func(m string) bool { return strings.HasPrefix(in.Name, m) }) {
			names = append(names, in.Name)
		}
	}
	return names
}

// Anchored reports whether a training step reads the parameters that its unit began with.
func Anchored(p *program.Program) bool {
	for _, in := range p.Inputs() {
		if strings.HasPrefix(in.Name, Anchor) {
			return true
		}
	}
	return false
}

// Frozen returns the names of the tensors that a training step reads and does not train, in the order of its inputs.
func Frozen(p *program.Program) []string { return tensors(p, false) }

// tensors lists the weights that a step gives the next values of, or those that it only reads.
func tensors(p *program.Program, trained bool) (names []string) {
	made := map[string]bool{}
	for _, o := range p.Outputs {
		made[o.Name] = true
	}
	for _, in := range p.Inputs() {
		if n, ok := strings.CutPrefix(in.Name, Param); ok && n != "" && made[in.Name] == trained {
			names = append(names, n)
		}
	}
	return names
}

// Measured are scalars for the outputs of a step that are no state: its loss and its norm. Of the stages of a model
// only the last has them.
func Measured(p *program.Program) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for _, o := range p.Outputs {
		if o.Name == "loss" || o.Name == "grad_norm" {
			all[o.Name] = tensor.Scalar(0)
		}
	}
	return all
}

// Value is the value of a scalar, and 0 of none.
func Value(x *tensor.Tensor) float32 {
	if x == nil {
		return 0
	}
	return x.F32()[0]
}

// checkEarlier reports a tensor of a state that is said to be a parameter before earlier updates, and is none, or is in
// a step that is not cut: units that carry a state begin with other parameters than those of the checkpoint.
func checkEarlier(p *program.Program, cut bool) error {
	names, shapes := Params(p), p.InputShapes()
	for _, n := range Moments(p) {
		k, of, ok := optimizer.EarlierOf(n)
		switch {
		case !strings.HasPrefix(n, optimizer.Earlier):
		case !ok || k > replica.MaxLate || !slices.Contains(names, of) || !shapes[n].Equal(shapes[Param+of]):
			return fmt.Errorf("%q is no parameter before up to %d updates", n, replica.MaxLate)
		case !cut:
			return fmt.Errorf("the program reads %q, as stages of a model alone do", n)
		}
	}
	return nil
}
