// Package optimizer is the last part of a training step: the operators that take gradients, bound their norm, and move
// each trained tensor and what the optimizer remembers of it.
//
// It computes nothing and knows no schedule: the learning rate and the corrections of bias are inputs of the program.
// An optimizer consists of operators that programs have, so that a step of it is disputed like any other.
package optimizer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Names of inputs and outputs of programs: what is trained, what an optimizer remembers of it, and what it was when its
// unit began, are prefixed with these.
const (
	Param   = "p/"
	First   = "m/" // the first moment, or the momentum
	Second  = "v/" // the second moment
	Rows    = "r/" // the second moment of rows, of Adafactor
	Columns = "s/" // the second moment of columns
	Begin   = "b/"
	Earlier = "h/" // "h/<k>/<name>" is the tensor before the last k updates

	Gradient = "g/" // of an optimizer alone
)

// memories are the prefixes of the state of optimizers, in the order of inputs and outputs.
var memories = []string{First, Second, Rows, Columns}

// ErrInvalid is wrapped by errors about constants that an optimizer cannot have.
var ErrInvalid = errors.New("optimizer: invalid constant")

// EarlierName is the name of a tensor before its last k updates, as an input and output of programs.
func EarlierName(k int, name string) string { return fmt.Sprintf("%s%d/%s", Earlier, k, name) }

// EarlierOf is the number of updates and the tensor that such a name has; false: it is none.
func EarlierOf(input string) (k int, name string, ok bool) {
	rest, is := strings.CutPrefix(input, Earlier)
	number, name, cut := strings.Cut(rest, "/")
	k, err := strconv.Atoi(number)
	return k, name, is && cut && err == nil && k > 0 && EarlierName(k, name) == input
}

// Tensor is a trained tensor.
type Tensor struct {
	Name  string
	Shape tensor.Shape
	// Stage is the part of the model that the tensor belongs to, from 0. The norm of gradients is that of a stage, and
	// "grad_norm" that of the last one.
	Stage int
}

// An Optimizer is one of AdamW, SGD, Lion and Adafactor.
type Optimizer interface {
	// Check reports constants that it cannot have.
	Check() error
	common() Common
	// remembers are the shapes of the optimizer's state for a tensor, by prefix.
	remembers(t Tensor) map[string]tensor.Shape
	// next returns the next value of a tensor and of its optimizer state, given its gradient g, which it multiplies by
	// scale.
	next(s *Step, t Tensor, p, g, scale program.Value, before map[string]program.Value) (program.Value,
		map[string]program.Value)
}

// Common is what all optimizers have. Weight decay applies to tensors of two or more dimensions, with DecayAll to every
// tensor. MaxGradNorm bounds the norm of all gradients together; 0 is no bound.
type Common struct {
	WeightDecay, MaxGradNorm float64
	DecayAll                 bool

	// Proximal pulls every tensor back to where it was when a unit began: the gradient of Proximal/2 * |w - begin|^2 is
	// added (FedProx, Li et al. 2020). 0 is none.
	Proximal float64

	Storage Storage // of the state
}

func (c Common) common() Common { return c }

func (c Common) check() error {
	if !(c.Proximal >= 0 && c.Proximal <= 1e3) {
		return fmt.Errorf("%w: proximal %g must be in 0..1000", ErrInvalid, c.Proximal)
	}
	if !(c.WeightDecay >= 0 && c.WeightDecay <= 1 && c.MaxGradNorm >= 0 && c.MaxGradNorm <= 1e9) {
		return fmt.Errorf("%w: weight decay %g must be in 0..1, max grad norm %g in 0..1e9", ErrInvalid, c.WeightDecay,
			c.MaxGradNorm)
	}
	if s := c.Storage; s != "" && s != Whole && s != Half && s != Blocks {
		return fmt.Errorf("%w: storage %q of the state", ErrInvalid, s)
	}
	return nil
}

// decay is the weight decay of a tensor.
func (c Common) decay(t Tensor) float64 {
	if c.DecayAll || len(t.Shape.Dims) >= 2 {
		return c.WeightDecay
	}
	return 0
}

func share(name string, x float64) error {
	if !(x >= 0 && x < 1) {
		return fmt.Errorf("%w: %s %g must be at least 0 and below 1", ErrInvalid, name, x)
	}
	return nil
}

// Step appends the optimizer to a program. The first error sticks; what is appended after it is never seen.
type Step struct {
	b *program.Builder
	// the learning rate, and the corrections 1/(1-beta^t) of AdamW: scalars
	LR, C1, C2 program.Value

	err error
}

func (s *Step) keep(v program.Value, err error) program.Value {
	if s.err == nil {
		s.err = err
	}
	return v
}

func (s *Step) apply(k program.Kind, operands ...program.Value) program.Value {
	return s.keep(s.b.Apply(k, operands...))
}

func (s *Step) scalar(x float64) program.Value { return s.b.Constant(tensor.Scalar(float32(x))) }

// like repeats a scalar to the shape of x.
func (s *Step) like(scalar, x program.Value) program.Value {
	return s.keep(s.b.Broadcast(scalar, s.b.Shape(x).Dims, nil))
}

// times is x times a scalar, rounded.
func (s *Step) times(x, scalar program.Value) program.Value {
	return s.apply(program.Mul, x, s.like(scalar, x))
}

// decayed adds to a step the weight decay of p.
func (s *Step) decayed(step, p program.Value, decay float64) program.Value {
	if decay == 0 {
		return step
	}
	return s.apply(program.Add, step, s.times(p, s.scalar(decay)))
}

// moved is p - lr*step.
func (s *Step) moved(p, step program.Value) program.Value {
	return s.apply(program.Sub, p, s.times(step, s.LR))
}

// stagesOf are those of some tensors, in ascending order.
func stagesOf(trained []Tensor) (list []int) {
	for _, t := range trained {
		list = append(list, t.Stage)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Append declares what the optimizer remembers, clips the gradients of each stage, and outputs the updated tensors,
// what is remembered of them and "grad_norm", the Euclidean norm of all gradients of the last stage before they are
// clipped. lr, c1 and c2 are scalars.
func Append(b *program.Builder, o Optimizer, trained []Tensor, params, grads []program.Value,
	lr, c1, c2 program.Value) error {
	s := &Step{b: b, LR: lr, C1: c1, C2: c2}
	c, parts := o.common(), make([]map[string][]program.Value, len(trained)) // of moments, by tensor and prefix
	for i := range parts {
		parts[i] = map[string][]program.Value{}
	}
	each := func(visit func(prefix string, i int, list []part)) {
		for _, prefix := range memories {
			for i, t := range trained {
				if shape, ok := o.remembers(t)[prefix]; ok {
					visit(prefix, i, c.Storage.parts(prefix, shape))
				}
			}
		}
	}
	each(func(prefix string, i int, list []part) {
		for _, p := range list {
			parts[i][prefix] = append(parts[i][prefix], b.Input(prefix+trained[i].Name+p.suffix, p.shape))
		}
	})
	if c.Proximal > 0 {
		s.pull(c.Proximal, trained, params, grads)
	}
	var norm program.Value
	scales := map[int]program.Value{}
	for _, stage := range stagesOf(trained) {
		var own []program.Value
		for i, t := range trained {
			if t.Stage == stage {
				own = append(own, grads[i])
			}
		}
		norm = s.norm(own)
		scales[stage] = s.clip(c.MaxGradNorm, norm)
	}
	for i, t := range trained {
		before, shapes := map[string]program.Value{}, o.remembers(t)
		for _, prefix := range memories {
			if shape, ok := shapes[prefix]; ok {
				before[prefix] = s.restored(c.Storage, prefix, shape, parts[i][prefix])
			}
		}
		p, after := o.next(s, t, params[i], grads[i], scales[t.Stage], before)
		params[i] = p
		for _, prefix := range memories {
			if v, ok := after[prefix]; ok {
				parts[i][prefix] = s.stored(c.Storage, prefix, v)
			}
		}
	}
	for i, t := range trained {
		b.Output(Param+t.Name, params[i])
	}
	each(func(prefix string, i int, list []part) {
		for k, p := range list {
			b.Output(prefix+trained[i].Name+p.suffix, parts[i][prefix][k])
		}
	})
	b.Output("grad_norm", norm)
	return s.err
}

// pull adds the proximal term to the gradients: proximal*(w - begin), every operation rounded.
func (s *Step) pull(proximal float64, trained []Tensor, params, grads []program.Value) {
	for i, t := range trained {
		away := s.apply(program.Sub, params[i], s.b.Input(Begin+t.Name, t.Shape))
		weight := s.like(s.scalar(proximal), params[i])
		grads[i] = s.apply(program.Add, grads[i], s.apply(program.Mul, away, weight))
	}
}

// norm is the Euclidean norm of all gradients together.
func (s *Step) norm(grads []program.Value) program.Value {
	total := s.apply(program.SumSquares, grads[0])
	for _, g := range grads[1:] {
		total = s.apply(program.Add, total, s.apply(program.SumSquares, g))
	}
	return s.apply(program.Sqrt, total)
}

// clip is the factor min(1, most/(norm+1e-6)) for the gradients, as PyTorch's clip_grad_norm_ has it.
func (s *Step) clip(most float64, norm program.Value) program.Value {
	one := s.scalar(1)
	if most == 0 {
		return one
	}
	floor := s.apply(program.Add, norm, s.scalar(1e-6))
	ratio := s.apply(program.Div, s.scalar(most), floor)
	return s.apply(program.Min, one, ratio)
}

// rootMean is sqrt(sum(x*x)/n) of n elements: a scalar.
func (s *Step) rootMean(x program.Value) program.Value {
	n := s.b.Shape(x).Elements()
	return s.apply(program.Sqrt, s.apply(program.Mul, s.apply(program.SumSquares, x), s.scalar(1/float64(n))))
}
