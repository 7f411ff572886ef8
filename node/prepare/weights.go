package prepare

import (
	"maps"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
)

// adapt gives the model the adapter that the job asks for, if it does.
func (b *CompiledJob) adapt() (err error) {
	b.Trained = b.Model
	a := b.Job.Model.Adapter
	if a == nil || a.LoRA == nil {
		return nil
	}
	targets := a.LoRA.TargetModules
	if len(targets) == 0 {
		targets = []string{model.AllLinear}
	}
	if b.Trained, err = b.Model.Adapt(model.LoRA{Rank: a.LoRA.R, Alpha: a.LoRA.Alpha, Targets: targets,
		Dropout: a.LoRA.Dropout, Bits: b.Job.Model.Bits()}); err != nil {
		return problem(b.Job, "model.adapter", job.CodeBadValue, "the adapter cannot be built", err,
			"change r, alpha or target_modules")
	}
	return nil
}

// begin makes the first checkpoint. It is the base model, or weights drawn from the seed; with an adapter it is the
// adapter, and the base model is frozen.
func (b *CompiledJob) begin(base *folder.Model) (err error) {
	if err := beginningFits(b); err != nil {
		return err
	}
	var weights map[string]*tensor.Tensor
	switch {
	case base == nil:
		weights = b.Model.Init(b.Job.Seed)
	case b.adapted():
		weights = b.Trained.InitAdapters(b.Job.Seed)
		names, inputs := train.Frozen(b.Step), b.Step.InputShapes()
		shapes := make([]tensor.Shape, len(names))
		for i, n := range names {
			shapes[i] = inputs[train.Param+n]
		}
		if b.Frozen, err = blocks.Compress(names, shapes, base.Tensors); err != nil {
			return err
		}
	default:
		weights = base.Tensors
	}
	b.Genesis, err = outer.Genesis(b.Exchange(), train.Params(b.Step), weights)
	return err
}

// Begin makes the first checkpoint of an Outline, which is that of New then.
func (b *CompiledJob) Begin() error {
	if b.Genesis != nil {
		return nil
	}
	if err := b.begin(nil); err != nil {
		return err
	}
	b.Spec.Genesis = b.Genesis.Root()
	return nil
}

func (b *CompiledJob) adapted() bool { return len(b.Trained.Adapters()) > 0 }

// base are the frozen tensors by name.
func (b *CompiledJob) base() map[string]*tensor.Tensor {
	frozen := map[string]*tensor.Tensor{}
	for i, n := range train.Frozen(b.Step) {
		frozen[n] = b.Frozen[i]
	}
	return frozen
}

// trainedWeights are the tensors of a checkpoint by name: those of the model or of its adapter.
func trainedWeights(c *train.Checkpoint) map[string]*tensor.Tensor {
	weights := map[string]*tensor.Tensor{}
	for i, n := range c.Names {
		weights[n] = c.Params[i]
	}
	return weights
}

// Weights are the tensors of the whole model of a checkpoint by name, with its adapter merged in.
func (b *CompiledJob) Weights(c *train.Checkpoint) (map[string]*tensor.Tensor, error) {
	if !b.adapted() {
		return trainedWeights(c), nil
	}
	return b.Trained.Merge(blocks.Expand(b.base()), trainedWeights(c))
}

// EvalInputs are what the evaluation of a checkpoint reads besides tokens.
func (b *CompiledJob) EvalInputs(c *train.Checkpoint) map[string]*tensor.Tensor {
	all := b.base()
	maps.Copy(all, trainedWeights(c))
	in := map[string]*tensor.Tensor{}
	for n, t := range all {
		in[train.Param+n] = t
	}
	return in
}
