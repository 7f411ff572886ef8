package referee

import (
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
)

// classifierJob makes a task that classifies images, and its first checkpoint.
func classifierJob(t *testing.T, name string, config map[string]any) (*train.Task, *train.Checkpoint) {
	t.Helper()
	n, err := vision.Parse(name, config, picture.Size{Rows: 6, Columns: 4, Channels: 1}, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	return classJob(t, n, 256, architecture.Init(n.Tensors(), 3), nil)
}

// textJob makes a task that classifies texts, of which the last tokens are padding, and its first checkpoint.
func textJob(t *testing.T, name string, config map[string]any, lora *architecture.LoRA) (*train.Task,
	*train.Checkpoint) {
	t.Helper()
	config["vocab_size"] = 100
	c, err := architecture.Parse(name, config)
	if err != nil {
		t.Fatal(err)
	}
	n, err := textclass.New(c, []string{"a", "b", "c"}, 12, 100)
	if err != nil {
		t.Fatal(err)
	}
	base := n.Language().Init(3)
	if lora != nil {
		if c, err = n.Language().Adapt(*lora); err != nil {
			t.Fatal(err)
		}
		n = n.On(c)
	}
	return classJob(t, n, 101, n.Begin(base, 3), base)
}

// classJob makes a task that classifies examples, each of drawn tokens below vocab, and its first checkpoint. The last
// tokens of an example are the largest that there is.
func classJob(t *testing.T, n model.Classifier, vocab uint32, weights, base map[string]*tensor.Tensor) (*train.Task,
	*train.Checkpoint) {
	t.Helper()
	random, rows := philox.New(4, 0), make([][]uint32, 40)
	for i := range rows {
		rows[i] = []uint32{uint32(i % 3)}
		for k := range n.Example() {
			token := uint32(random.Uint64n(uint64(vocab)))
			if k > 3+i%6 {
				token = vocab - 1
			}
			rows[i] = append(rows[i], token)
		}
	}
	examples, err := data.Rows(rows, vocab, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.Classify(n, model.Batch{Sequences: tiny.batch, Dropout: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return exampleJob(t, task, examples, 1+n.Example(), weights, base)
}

// exampleJob makes a task whose examples have the given number of tokens, and its first checkpoint.
func exampleJob(t *testing.T, task model.Task, examples *data.Corpus, length int,
	weights, base map[string]*tensor.Tensor) (*train.Task, *train.Checkpoint) {
	t.Helper()
	plain, _ := job(t, tiny)
	step, err := task.TrainStep(adamw)
	if err != nil {
		t.Fatal(err)
	}
	spec := *plain.Spec
	spec.Program, spec.Length, spec.Data = step.Digest(), uint32(length), examples.Manifest(shardTokens).Digest()
	spec.Batch = uint32(task.Batch[0].Shape.Dims[0])
	var frozen []*tensor.Tensor
	for _, name := range train.Frozen(step) {
		frozen = append(frozen, base[name])
	}
	if frozen != nil {
		spec.Frozen = train.FrozenRoot(train.Roots(frozen))
	}
	genesis, err := outer.Genesis(spec.Exchange, train.Params(step), weights)
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, &train.Task{Spec: &spec, Step: step, Corpus: examples, Frozen: frozen}), genesis
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
		for _, i := range distinct(task.Step) {
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

// So is one that reads a text at another token, reads padding as another token, or computes another language model
// under the classes.
func TestOtherClassifierOfTexts(t *testing.T) {
	lora := architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}}
	for _, c := range []struct {
		name   string
		config map[string]any
		lora   *architecture.LoRA
	}{
		{architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 12}, nil},
		{architecture.Llama, map[string]any{"num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
			"num_attention_heads": 2, "max_position_embeddings": 12}, &lora},
	} {
		task, base := textJob(t, c.name, c.config, c.lora)
		w := witness.New(task, base, unit, nil, shardTokens)
		r := newReferee(task.Spec, task.Step)
		for _, i := range distinct(task.Step) {
			checkPart(t, w, r, base, i, 0)
		}
		honest := vouch(t, task, base, unit, nil)
		for kind, change := range map[program.Kind]func(op *program.Operator){
			program.ReduceMax: func(op *program.Operator) { op.Kind = program.ReduceMin }, // the last token of a text
			program.NotEqual:  func(op *program.Operator) { op.Kind = program.Greater },   // what is padding
			program.Sqrt:      func(op *program.Operator) { op.Kind = program.Rsqrt },     // a norm of the language model
		} {
			convict(t, c.name+", "+kind.String(), task, tampered(t, task, kind, change), base, honest)
		}
	}
}

// So is a worker that computes another score of one of the two texts of a pair, or another loss of their difference.
func TestOtherRewardModel(t *testing.T) {
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 100, "num_hidden_layers": 1,
		"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2, "max_position_embeddings": 12})
	if err != nil {
		t.Fatal(err)
	}
	n, err := textclass.New(c, []string{"reward"}, 6, 100)
	if err != nil {
		t.Fatal(err)
	}
	loss, err := model.Rank(n, model.Batch{Sequences: tiny.batch, Dropout: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	random, rows := philox.New(4, 0), make([][]uint32, 40)
	for i := range rows {
		for k := range 2 * n.Example() {
			token := uint32(random.Uint64n(100))
			if k%n.Example() > 2+i%4 {
				token = 100
			}
			rows[i] = append(rows[i], token)
		}
	}
	pairs, err := data.Rows(rows, 101, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	task, base := exampleJob(t, loss, pairs, 2*n.Example(), n.Begin(nil, 3), nil)
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for _, i := range distinct(task.Step) {
		checkPart(t, w, r, base, i, 0)
	}
	honest := vouch(t, task, base, unit, nil)
	for kind, change := range map[program.Kind]func(op *program.Operator){
		program.ReduceMax: func(op *program.Operator) { op.Kind = program.ReduceMin }, // the last token of a text
		program.Sub:       func(op *program.Operator) { op.Kind = program.Add },
	} {
		convict(t, kind.String(), task, tampered(t, task, kind, change), base, honest)
	}
}
