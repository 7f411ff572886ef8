package serve

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/node/layered/part"
)

// errStages refuses the front of a model for which no stages are given.
var errStages = errors.New("it is the front of a model in stages, and no holders of its stages are given")

// front loads what stands before and after the layers of a model in stages. Nothing of it may be pulled.
func (e *Engine) front(dir string, o Options) (generate.Model, error) {
	if o.Stages == nil || len(o.Adapters) > 0 {
		return nil, fmt.Errorf("%w: %s: %w; with adapters: %t", ErrFolder, dir, errStages, len(o.Adapters) > 0)
	}
	m, read, err := part.ReadFront(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, dir, err)
	}
	e.tok, e.context, e.ends, e.ignored = read.Tokenizer, read.Config.Context(), read.Ends, read.Ignored
	e.checked = o.Checked
	if err := e.add(o.Name, dir); err != nil {
		return nil, err
	}
	e.infos[0].State = "fp_" + m.Weights.String()[:16]
	stages, err := o.Stages(m.Manifest, m.Layout)
	if err != nil {
		return nil, err
	}
	model, err := generate.NewPipeline(m.Layout, m.Tensors, positive(o.Threads, 1), stages)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return model, nil
}
