package benchmark

import (
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// trainer takes one step of AdamW after the other at a constant learning rate.
type trainer struct {
	exec    *program.Exec
	names   []string                  // of the tensors that a step changes, with their prefixes
	in, out map[string]*tensor.Tensor // of a step; what it changes is swapped after it
	spec    train.Spec                // of the scalars
	done    uint32                    // steps
	flops   float64                   // of a step
}

// recipe is what a training step is compiled from.
type recipe struct {
	config        model.Config
	optimizer     model.AdamW
	rate          float64
	batch, length int // sequences, tokens of each
	threads       int
}

// newTrainer compiles the step and takes over the weights.
func newTrainer(r recipe, weights map[string]*tensor.Tensor) (*trainer, error) {
	p, err := model.TrainStep(r.config, r.optimizer, r.batch, r.length)
	if err != nil {
		return nil, err
	}
	t := &trainer{
		in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}, flops: float64(p.Flops()),
		spec: train.Spec{
			Rounds: 1, Rate: train.Rate{Kind: train.Constant, Peak: r.rate}, Beta1: r.optimizer.Beta1, Beta2: r.optimizer.Beta2,
		},
	}
	if t.exec, err = program.Compile(p, r.threads); err != nil {
		return nil, err
	}
	for _, input := range p.Inputs() {
		t.in[input.Name] = tensor.New(input.Shape)
	}
	for name, w := range weights {
		t.in[train.Param+name] = w
	}
	for _, o := range p.Outputs {
		state, ok := t.in[o.Name]
		if ok {
			t.names = append(t.names, o.Name)
		}
		if t.out[o.Name] = state; !ok || !t.exec.Shares(o.Name, o.Name) {
			t.out[o.Name] = tensor.New(p.Ops[o.Value].Out)
		}
	}
	return t, nil
}

// tokens is the batch of the next step, [batch, length+1] in rows.
func (t *trainer) tokens() []int32 { return t.in["tokens"].I32() }

// step trains on tokens and returns the loss before the update, in nats a token.
func (t *trainer) step() (float32, error) {
	lr, c1, c2 := t.spec.Scalars(0, 0, t.done)
	t.in["lr"].F32()[0], t.in["c1"].F32()[0], t.in["c2"].F32()[0] = lr, c1, c2
	if err := t.exec.RunInto(t.in, t.out); err != nil {
		return 0, err
	}
	for _, n := range t.names {
		t.in[n], t.out[n] = t.out[n], t.in[n]
	}
	t.done++
	return t.out["loss"].F32()[0], nil
}
