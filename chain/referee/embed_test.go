package referee

import (
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
)

// embedJob makes a task that gives vectors to pairs of texts, of which the last tokens are padding and some are equal,
// and its first checkpoint.
func embedJob(t *testing.T, name string, config map[string]any, lora *architecture.LoRA) (*train.Task,
	*train.Checkpoint) {
	t.Helper()
	const length, pad = 6, 100
	config["vocab_size"] = pad
	c, err := architecture.Parse(name, config)
	if err != nil {
		t.Fatal(err)
	}
	n, err := embed.New(c, length, pad)
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
	random, rows := philox.New(4, 0), make([][]uint32, 40)
	for i := range rows {
		rows[i] = []uint32{uint32(i % 7), uint32(i)}
		for side := range 2 {
			for k := range length {
				token := uint32(random.Uint64n(pad))
				if k > 1+(i+side)%4 {
					token = pad
				}
				rows[i] = append(rows[i], token)
			}
		}
	}
	examples, err := data.Rows(rows, pad+1, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.Contrast(n, model.Batch{Sequences: 2 * tiny.batch, Dropout: 0.1}, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return exampleJob(t, task, examples, n.Example(), n.Begin(base, 3), base)
}

// A worker that compares a pair with other texts, takes other texts for equal ones or padding for text, or computes
// another language model, is convicted over a tile.
func TestOtherEncoderOfTexts(t *testing.T) {
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
		task, base := embedJob(t, c.name, c.config, c.lora)
		w := witness.New(task, base, unit, nil, shardTokens)
		r := newReferee(task.Spec, task.Step)
		for _, i := range distinct(task.Step) {
			checkPart(t, w, r, base, i, 0)
		}
		honest := vouch(t, task, base, unit, nil)
		for kind, change := range map[program.Kind]func(op *program.Operator){
			program.Or:        func(op *program.Operator) { op.Kind = program.And },       // which texts are equal
			program.LessEqual: func(op *program.Operator) { op.Kind = program.Greater },   // which tokens are seen
			program.ReduceMax: func(op *program.Operator) { op.Kind = program.ReduceMin }, // the last token of a text
			program.Sqrt:      func(op *program.Operator) { op.Kind = program.Rsqrt },     // a norm
		} {
			convict(t, c.name+", "+kind.String(), task, tampered(t, task, kind, change), base, honest)
		}
	}
}
