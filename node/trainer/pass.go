package trainer

import (
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/schedule"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// Sizes of programs.
const (
	minLength = 16      // tokens of a sequence, which double from here on
	maxRows   = 16      // sequences
	maxCells  = 1 << 11 // tokens of all sequences, if there are several
	maxLogits = 1 << 26 // logits of all tokens, if there are several sequences
)

// A group is data that one run of a program computes.
type group struct {
	rows, length int
	members      []int
}

// groups deals data into programs of few sizes: lengths and numbers of sequences are powers of two. Shorter sequences
// come first.
func (t *Trainer) groups(data []tinker.Datum) (groups []group) {
	byLength := map[int][]int{}
	var lengths []int
	for i, d := range data {
		length := minLength
		for length < len(d.Tokens) {
			length *= 2
		}
		length = min(length, t.base.Context)
		if byLength[length] == nil {
			lengths = append(lengths, length)
		}
		byLength[length] = append(byLength[length], i)
	}
	slices.Sort(lengths)
	for _, length := range lengths {
		most := 1
		for 2*most <= maxRows && 2*most*length <= maxCells && 2*most*length*t.base.Vocab <= maxLogits {
			most *= 2
		}
		for members := range slices.Chunk(byLength[length], most) {
			rows := 1
			for rows < len(members) {
				rows *= 2
			}
			groups = append(groups, group{rows, length, members})
		}
	}
	return groups
}

// inputs are the tensors of a group.
func (g group) inputs(data []tinker.Datum) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for _, name := range []string{tokenloss.Tokens, tokenloss.Targets} {
		in[name] = tensor.New(tensor.Make(tensor.Int32, g.rows, g.length))
	}
	for _, name := range []string{tokenloss.Weights, tokenloss.Sampled, tokenloss.Advantages} {
		in[name] = tensor.New(tensor.Make(tensor.Float32, g.rows, g.length))
	}
	for row, i := range g.members {
		Put(in, row*g.length, data[i])
	}
	return in
}

// Put writes a sequence into the tensors of a batch, which have their names of package tokenloss: its first target is
// the one at a place among those of all rows.
func Put(in map[string]*tensor.Tensor, at int, d tinker.Datum) {
	copy(in[tokenloss.Tokens].I32()[at:], d.Tokens)
	copy(in[tokenloss.Targets].I32()[at:], d.Targets)
	copy(in[tokenloss.Weights].F32()[at:], d.Weights)
	for k, a := range d.Advantages {
		if a != 0 && d.Weights[k] != 0 { // of another target the ratio, which may be too large, does not count
			in[tokenloss.Sampled].F32()[at+k], in[tokenloss.Advantages].F32()[at+k] = d.Sampled[k], a
		}
	}
}

// read takes the log-probabilities of a group from those of a run.
func (g group) read(logs []float32, data []tinker.Datum, into [][]float32) error {
	for row, i := range g.members {
		into[i] = slices.Clone(logs[row*g.length:][:len(data[i].Tokens)])
		for k, x := range into[i] {
			if x-x != 0 {
				return infinite(fmt.Sprintf("the log-probability of target %d of sequence %d is %v", k, i, x))
			}
		}
	}
	return nil
}

func infinite(what string) error {
	return failure.New(http.StatusUnprocessableEntity, "NOT_FINITE", what,
		"load earlier weights, and take a smaller learning rate or advantages")
}

// logProbs are the log-probabilities of the targets of data.
func (t *Trainer) logProbs(w weights, data []tinker.Datum) ([][]float32, error) {
	logs := make([][]float32, len(data))
	for _, g := range t.groups(data) {
		c, err := t.programs.of(key{kind: forward, rows: g.rows, length: g.length}, w)
		if err != nil {
			return nil, err
		}
		out, err := c.run(prefixed(optimizer.Param, t.tensors), prefixed(optimizer.Param, w.params), g.inputs(data))
		if err != nil {
			return nil, err
		}
		if err := g.read(out[tokenloss.LogProbs].F32(), data, logs); err != nil {
			return nil, err
		}
	}
	return logs, nil
}

// Forward implements tinker.Engine.
func (t *Trainer) Forward(name string, data []tinker.Datum) (*tinker.Pass, error) {
	m, err := t.model(name)
	if err != nil {
		return nil, err
	}
	logs, err := t.logProbs(m.weights, data)
	return &tinker.Pass{LogProbs: logs}, err
}

// FunctionOf is a loss as programs have it.
func FunctionOf(l tinker.Loss) tokenloss.Function {
	switch l.Name {
	case tinker.ImportanceSampling:
		return tokenloss.Function{Kind: tokenloss.ImportanceSampling}
	case tinker.PPO:
		return tokenloss.Function{Kind: tokenloss.Proximal, Low: l.Low, High: l.High}
	}
	return tokenloss.Function{}
}

// Backward implements tinker.Engine. After an error the model has no gradients, and refuses the next step.
func (t *Trainer) Backward(name string, data []tinker.Datum, l tinker.Loss) (*tinker.Pass, error) {
	m, err := t.model(name)
	if err != nil {
		return nil, err
	}
	pass, err := t.backward(m, data, FunctionOf(l))
	if err != nil {
		m.grads, m.lost = nil, true
	}
	return pass, err
}

func (t *Trainer) backward(m *model, data []tinker.Datum, f tokenloss.Function) (*tinker.Pass, error) {
	if m.grads == nil {
		m.grads = m.zeros()
	}
	pass := &tinker.Pass{LogProbs: make([][]float32, len(data)), Backward: true}
	for _, g := range t.groups(data) {
		c, err := t.programs.of(key{kind: backward, function: f, rows: g.rows, length: g.length}, m.weights)
		if err != nil {
			return nil, err
		}
		out, err := c.run(prefixed(optimizer.Param, t.tensors), prefixed(optimizer.Param, m.params),
			prefixed(tokenloss.Gradient, m.grads), g.inputs(data))
		if err != nil {
			return nil, err
		}
		take(tokenloss.Gradient, m.grads, out)
		loss := out[tokenloss.Loss].F32()[0]
		if loss-loss != 0 {
			return nil, infinite(fmt.Sprintf("the loss is %v; the gradients are dropped", loss))
		}
		if err := g.read(out[tokenloss.LogProbs].F32(), data, pass.LogProbs); err != nil {
			return nil, err
		}
		pass.Loss += float64(loss)
	}
	return pass, nil
}

// AdamW are the constants of an optimizer, without those that differ from step to step.
func AdamW(a tinker.Adam) optimizer.AdamW {
	return optimizer.AdamW{Beta1: a.Beta1, Beta2: a.Beta2, Eps: a.Eps, WeightDecay: a.Decay, MaxGradNorm: a.Clip,
		DecayAll: true}
}

// Step implements tinker.Engine.
func (t *Trainer) Step(name string, s tinker.Step) (map[string]float64, error) {
	m, err := t.model(name)
	if err != nil {
		return nil, err
	}
	if m.steps == math.MaxUint32 {
		return nil, failure.New(http.StatusConflict, "STEPS_OVER", "the model has as many steps as it may have", "save it")
	}
	if m.lost {
		m.grads, m.lost = nil, false
		return nil, failure.New(http.StatusConflict, "GRADIENTS_LOST",
			"a forward_backward before this step failed; the gradients of the others are dropped, and no weight moved",
			"send the whole batch again, then the step")
	}
	if m.grads == nil {
		m.grads = m.zeros()
	}
	if err := m.checkGradients(); err != nil {
		m.grads = nil
		return nil, err
	}
	if m.first == nil {
		m.first, m.second = m.zeros(), m.zeros()
	}
	a := s.Adam
	c, err := t.programs.of(key{kind: update, adam: AdamW(a)}, m.weights)
	if err != nil {
		return nil, err
	}
	scalars := map[string]*tensor.Tensor{"lr": tensor.Scalar(float32(a.Rate)),
		"c1": tensor.Scalar(schedule.Correction(a.Beta1, m.steps+1)),
		"c2": tensor.Scalar(schedule.Correction(a.Beta2, m.steps+1))}
	out, err := c.run(scalars, prefixed(optimizer.Param, m.params), prefixed(tokenloss.Gradient, m.grads),
		prefixed(optimizer.First, m.first), prefixed(optimizer.Second, m.second))
	if err != nil {
		return nil, err
	}
	take(optimizer.Param, m.params, out)
	take(optimizer.First, m.first, out)
	take(optimizer.Second, m.second, out)
	m.grads, m.steps = nil, m.steps+1
	return map[string]float64{"grad_norm": float64(out["grad_norm"].F32()[0])}, nil
}

// checkGradients refuses gradients whose norm is not finite in float32, in which a step computes it.
func (m *model) checkGradients() error {
	var squares float64
	for _, n := range tokenloss.Trained(m.config) {
		for _, x := range m.grads[n.Name].F32() {
			squares += float64(x) * float64(x)
		}
		if !(squares < math.MaxFloat32/2) {
			return infinite("the norm of the gradients up to that of " + n.Name + " is not finite; the gradients are dropped")
		}
	}
	return nil
}
