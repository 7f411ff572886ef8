package verify

import (
	"context"
	"errors"
	"math"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/bundle"
)

// ErrNoEval is returned for a run whose job holds nothing out.
var ErrNoEval = errors.New("the job holds no text out to evaluate on")

// EvaluateRun measures the last checkpoint of a run on what its job held out, as training does, to the bit. The text is
// that which the run shipped, so that no file but those of the folder is read.
func EvaluateRun(ctx context.Context, dir string, threads int) (*pretrained.Evaluation, error) {
	o := &rundir.OutDir{Path: dir}
	if err := o.ReadRun(); err != nil {
		return nil, err
	}
	j, err := o.LoadJob("")
	if err != nil {
		return nil, err
	}
	store, err := openBlobs(ctx, o)
	if err != nil {
		return nil, err
	}
	tokens := dataset.Spool()
	defer tokens.Close()
	b, err := shipped(o, ctx, j, store, tokens)
	if err != nil {
		return nil, err
	}
	lines, err := rundir.ParseLineage(o.File(rundir.FileLineage), o.Run.ID)
	if err != nil {
		return nil, err
	}
	last := b.Genesis
	if len(lines) > 0 {
		if last, err = bundle.LoadCheckpoint(ctx, lines[len(lines)-1].AsCheckpoint(), store.Get); err != nil {
			return nil, err
		}
	}
	exec, err := cpu.Compile(b.Eval, threads)
	if err != nil {
		return nil, err
	}
	loss, measured, err := measured.Evaluate(b, exec, last)
	if err != nil {
		return nil, err
	}
	if loss == nil {
		return nil, ErrNoEval
	}
	length := int(b.Spec.Length)
	if !j.PredictsText() {
		return &pretrained.Evaluation{Loss: *loss, Measured: measured, Window: length}, nil
	}
	e := &pretrained.Evaluation{Loss: *loss, Perplexity: math.Exp(*loss), Window: length,
		Tokens: len(heldout.Batches(b)) * b.EvalBatch * length, Bytes: heldout.Bytes(b)}
	e.BitsPerByte = pretrained.BitsPerByte(e.Loss, e.Tokens, e.Bytes)
	return e, nil
}
