package referee

import (
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
)

// classifierJob makes a task that classifies images, and its first checkpoint.
func classifierJob(t *testing.T, name string, config map[string]any) (*train.Task, *train.Checkpoint) {
	t.Helper()
	plain, _ := job(t, tiny)
	n, err := vision.Parse(name, config, picture.Size{Rows: 6, Columns: 4, Channels: 1}, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	random, rows := philox.New(4, 0), make([][]uint32, 40)
	for i := range rows {
		rows[i] = []uint32{uint32(i % 3)}
		for range n.Example() {
			rows[i] = append(rows[i], uint32(random.Uint64n(256)))
		}
	}
	images, err := data.Rows(rows, 256, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.Classify(n, model.Batch{Sequences: tiny.batch, Dropout: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	step, err := task.TrainStep(adamw)
	if err != nil {
		t.Fatal(err)
	}
	spec := *plain.Spec
	spec.Program, spec.Length, spec.Data = step.Digest(), uint32(1+n.Example()), images.Manifest(shardTokens).Digest()
	base, err := outer.Genesis(spec.Exchange, train.Params(step), architecture.Init(n.Tensors(), 3))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, &train.Task{Spec: &spec, Step: step, Corpus: images}), base
}

// A worker that computes another network, or another loss of classes, is convicted over a tile.
func TestOtherClassifier(t *testing.T) {
	for name, config := range map[string]map[string]any{
		vision.MLP: {"hidden_sizes": []any{7}},
		vision.CNN: {"hidden_sizes": []any{}, "conv_channels": []any{3, 2}},
	} {
		task, base := classifierJob(t, name, config)
		w := witness.New(task, base, unit, nil, shardTokens)
		r := newReferee(task.Spec, task.Step)
		for i := range task.Step.Ops {
			checkPart(t, w, r, base, i, 0)
		}
		honest := vouch(t, task, base, unit, nil)
		for kind, change := range map[program.Kind]func(op *program.Operator){
			program.Max: func(op *program.Operator) { op.Kind = program.Min },
			program.Mul: func(op *program.Operator) { op.Kind = program.Sub },
		} {
			convict(t, name+", "+kind.String(), task, tampered(t, task, kind, change), base, honest)
		}
	}
}
