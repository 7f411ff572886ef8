// Package meter measures the loss of parameters with the part of a training step that its loss needs.
package meter

import (
	"fmt"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Evaluator measures the loss of parameters: the part of the training step that its loss needs, about a third of the
// step's operations. It is for one goroutine.
type Evaluator struct {
	task   *train.Task
	exec   *cpu.Exec
	in     map[string]*tensor.Tensor
	tokens *tensor.Tensor
}

// New returns a meter for batches of the size of an inner step, with as many threads as the step has.
func New(t *train.Task) (*Evaluator, error) {
	exec, err := cpu.Compile(t.Step.Only("loss"), t.Exec.Threads())
	if err != nil {
		return nil, fmt.Errorf("train: the loss of the step: %w", err)
	}
	m := &Evaluator{
		task: t, exec: exec, in: map[string]*tensor.Tensor{},
		tokens: tensor.New(tensor.Shape{DType: tensor.Int32, Dims: []int{int(t.Spec.Batch), int(t.Spec.Length) + 1}}),
	}
	m.in["tokens"] = m.tokens
	if shape, ok := t.Step.InputShapes()["dice"]; ok { // what is dropped is the same for all parameters
		m.in["dice"] = tensor.New(shape)
	}
	for i, n := range train.Frozen(t.Step) {
		m.in[train.Param+n] = t.Frozen[i]
	}
	return m, nil
}

// Release gives memory back until the next loss.
func (m *Evaluator) Release() { m.exec.Release() }

// Loss is the mean cross-entropy, in nats, of parameters (by Params of the step) on tokens [Batch, Length+1].
func (m *Evaluator) Loss(params []*tensor.Tensor, tokens []int32) (float32, error) {
	names := train.Params(m.task.Step)
	if len(params) != len(names) || len(tokens) != len(m.tokens.I32()) {
		return 0, fmt.Errorf("train: the loss of %d parameters on %d tokens, want %d and %d", len(params), len(tokens),
			len(names), len(m.tokens.I32()))
	}
	for i, n := range names {
		m.in[train.Param+n] = params[i]
	}
	copy(m.tokens.I32(), tokens)
	out, err := m.exec.Run(m.in)
	if err != nil {
		return 0, fmt.Errorf("train: the loss of a step: %w", err)
	}
	return out["loss"].F32()[0], nil
}
