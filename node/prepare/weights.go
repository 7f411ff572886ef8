package prepare

import (
	"maps"
	"strings"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/adapter"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
)

// adapt gives the language model c the adapter that the job asks for, if it does.
func (b compilation) adapt(c architecture.Config) (err error) {
	b.Trained = c
	a := b.Job.Model.Adapter
	if a == nil || a.LoRA == nil {
		return nil
	}
	targets := a.LoRA.TargetModules
	if len(targets) == 0 {
		targets = []string{architecture.AllLinear}
	}
	if b.Trained, err = c.Adapt(architecture.LoRA{Rank: a.LoRA.R, Alpha: a.LoRA.Alpha, Targets: targets,
		Dropout: a.LoRA.Dropout, Bits: b.Job.Model.Bits()}); err != nil {
		return b.Job.Refuse("model.adapter", problem.BadValue, "the adapter cannot be built", err,
			"change r, alpha or target_modules")
	}
	return nil
}

// begin makes the first checkpoint. It is the base model, or weights drawn from the seed; with an adapter it is the
// adapter, and the base model is frozen.
func (b compilation) begin(base *folder.Model) (err error) {
	if err := beginningFits(b.CompiledJob); err != nil {
		return err
	}
	var weights map[string]*tensor.Tensor
	n, texts := b.encoder()
	switch {
	case base == nil:
		weights = architecture.Init(b.Model.Tensors(), b.Job.Seed)
	case texts:
		weights = n.Begin(base.Tensors, b.Job.Seed)
	case b.adapted():
		weights = b.Trained.InitAdapters(b.Job.Seed)
	default:
		weights = base.Tensors
	}
	if names := train.Frozen(b.Step); len(names) > 0 && b.Frozen == nil {
		if err := b.freeze(names, base.Tensors); err != nil {
			return err
		}
	}
	b.Genesis, err = outer.Genesis(b.Exchange(), train.Params(b.Step), weights)
	return err
}

// freeze takes the tensors that the step reads and does not train from the base model, in the form that it reads, or
// from those that the job reads besides. A reference is of the model itself.
func (b compilation) freeze(names []string, base map[string]*tensor.Tensor) (err error) {
	inputs, own := b.Step.InputShapes(), make([]string, len(names))
	shapes := make([]tensor.Shape, len(names))
	for i, n := range names {
		own[i], shapes[i] = strings.TrimPrefix(n, model.Reference), inputs[train.Param+n]
	}
	all := maps.Clone(b.read)
	if all == nil {
		all = map[string]*tensor.Tensor{}
	}
	maps.Copy(all, base)
	if b.Frozen, err = blocks.Compress(own, shapes, all); err != nil {
		return err
	}
	b.FrozenRoots = train.RootsBy(kernel.Cores, b.Frozen, func(t *tensor.Tensor) { b.Files.Rest(t.Bytes()) })
	return nil
}

// Begin makes the first checkpoint of an Outline, which is that of New then.
func (b *CompiledJob) Begin() error {
	if b.Genesis != nil {
		return nil
	}
	if err := (compilation{b}).begin(nil); err != nil {
		return err
	}
	b.Spec.Genesis = b.Genesis.Root()
	return nil
}

func (b *CompiledJob) adapted() bool {
	_, adapted := b.Trained.LoRA()
	return adapted
}

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
	all := map[string]*tensor.Tensor{}
	weight := merged(b, c)
	for _, n := range b.Model.Tensors() {
		var err error
		if all[n.Name], err = weight(n.Name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// merged returns how a tensor of the whole model of a checkpoint is made, so that a caller needs one of them in memory.
func merged(b *CompiledJob, c *train.Checkpoint) func(name string) (*tensor.Tensor, error) {
	trained, frozen := trainedWeights(c), b.base()
	return func(name string) (*tensor.Tensor, error) {
		if t := trained[name]; t != nil || !b.adapted() {
			return t, nil
		}
		one := map[string]*tensor.Tensor{name: frozen[name]}
		if scales := frozen[name+blocks.Suffix]; scales != nil {
			one[name+blocks.Suffix] = scales
		}
		return adapter.Merge(b.Trained, name, blocks.Expand(one)[name], trained)
	}
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
