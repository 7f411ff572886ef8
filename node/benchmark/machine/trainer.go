package machine

import (
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Trainer takes one step of AdamW after the other at a constant learning rate.
type Trainer struct {
	exec    *cpu.Exec
	names   []string                  // of the tensors that a step changes, with their prefixes
	In, out map[string]*tensor.Tensor // of a step: the tensors that it changes are swapped after it
	Spec    train.Spec                // of the scalars
	done    uint32                    // steps
	flops   float64                   // of a step
}

// Recipe is the input from which a training step is compiled.
type Recipe struct {
	Config        architecture.Config
	Optimizer     optimizer.AdamW
	Rate          float64
	Batch, Length int // sequences, tokens of each
	Threads       int
}

// NewTrainer compiles the step of a language model and takes over the weights.
func NewTrainer(r Recipe, weights map[string]*tensor.Tensor) (*Trainer, error) {
	p, err := model.TrainStep(r.Config, r.Optimizer, r.Batch, r.Length)
	if err != nil {
		return nil, err
	}
	return ProgramTrainer(p, r, weights)
}

// ProgramTrainer compiles a step and takes over the weights. Of the recipe it reads the optimizer, the rate and the
// threads.
func ProgramTrainer(p *program.Program, r Recipe, weights map[string]*tensor.Tensor) (*Trainer, error) {
	t := &Trainer{
		In: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}, flops: float64(p.Flops()),
		Spec: train.Spec{
			Rounds: 1, Rate: train.Rate{Kind: train.Constant, Peak: r.Rate}, Beta1: r.Optimizer.Beta1, Beta2: r.Optimizer.Beta2,
		},
	}
	var err error
	if t.exec, err = cpu.Compile(p, r.Threads); err != nil {
		return nil, err
	}
	for _, input := range p.Inputs() {
		t.In[input.Name] = tensor.New(input.Shape)
	}
	for name, w := range weights {
		t.In[train.Param+name] = w
	}
	for _, o := range p.Outputs {
		state, ok := t.In[o.Name]
		if ok {
			t.names = append(t.names, o.Name)
		}
		if t.out[o.Name] = state; !ok || !t.exec.Shares(o.Name, o.Name) {
			t.out[o.Name] = tensor.New(p.Ops[o.Value].Out)
		}
	}
	return t, nil
}

// Tokens is the batch of the next step, [batch, length+1] in rows.
func (t *Trainer) Tokens() []int32 { return t.In["tokens"].I32() }

// Step trains on tokens and returns the loss before the update, in nats a token.
func (t *Trainer) Step() (float32, error) {
	lr, c1, c2 := t.Spec.Scalars(0, 0, t.done)
	t.In["lr"].F32()[0], t.In["c1"].F32()[0], t.In["c2"].F32()[0] = lr, c1, c2
	if err := t.exec.RunInto(t.In, t.out); err != nil {
		return 0, err
	}
	for _, n := range t.names {
		t.In[n], t.out[n] = t.out[n], t.In[n]
	}
	t.done++
	return t.out["loss"].F32()[0], nil
}
