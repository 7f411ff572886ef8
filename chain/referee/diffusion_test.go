package referee

import (
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/diffusion"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
)

// diffusionJob makes a task that estimates the noise in images, and its first checkpoint.
func diffusionJob(t *testing.T, name string, config map[string]any) (*train.Task, *train.Checkpoint) {
	t.Helper()
	n, err := diffusion.Parse(name, config, picture.Size{Rows: 4, Columns: 2, Channels: 1}, 60)
	if err != nil {
		t.Fatal(err)
	}
	random, rows := philox.New(4, 0), make([][]uint32, 40)
	for i := range rows {
		for range n.Example() {
			rows[i] = append(rows[i], uint32(random.Uint64n(256)))
		}
	}
	examples, err := data.Rows(rows, 256, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.Denoise(n, model.Batch{Sequences: tiny.batch, Dropout: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return exampleJob(t, task, examples, n.Example(), architecture.Init(n.Tensors(), 3), nil)
}

// A worker that draws other noise or other times, or computes another network, is convicted over a tile.
func TestOtherDenoiser(t *testing.T) {
	for name, config := range map[string]map[string]any{
		diffusion.MLP: {"hidden_sizes": []any{6, 6}},
		diffusion.CNN: {"conv_channels": []any{3, 3}},
	} {
		task, base := diffusionJob(t, name, config)
		w := witness.New(task, base, unit, nil, shardTokens)
		r := newReferee(task.Spec, task.Step)
		for _, i := range distinct(task.Step) {
			checkPart(t, w, r, base, i, 0)
		}
		honest := vouch(t, task, base, unit, nil)
		for kind, change := range map[program.Kind]func(op *program.Operator){
			program.Log:   func(op *program.Operator) { op.Kind = program.Exp },  // the length of the noise
			program.Cos:   func(op *program.Operator) { op.Kind = program.Sin },  // its direction, or the given times
			program.Floor: func(op *program.Operator) { op.Kind = program.Ceil }, // the drawn times
			program.Sub:   func(op *program.Operator) { op.Kind = program.Add },  // the error of the estimate
		} {
			convict(t, name+", "+kind.String(), task, tampered(t, task, kind, change), base, honest)
		}
	}
}
