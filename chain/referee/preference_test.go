package referee

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
)

// preferenceJob makes a task that learns from pairs of answers, with the whole model as its reference, and its first
// checkpoint.
func preferenceJob(t *testing.T) (*train.Task, *train.Checkpoint) {
	plain, _ := job(t, tiny)
	text := strings.Repeat("{\"a\":\"ask yes\",\"b\":\"ask no\"}\n{\"a\":\"why so\",\"b\":\"why not\"}\n", 30)
	pairs, err := data.BuildChosen([]source.File{{Format: source.JSONL, Name: "pairs", Data: []byte(text),
		Examples: func(object map[string]json.RawMessage) (docs []source.Document, err error) {
			for _, key := range []string{"a", "b"} {
				answer := strings.Trim(string(object[key]), `"`)
				docs = append(docs, source.Document{Text: answer, Learnt: []source.TextRange{{From: 4, To: len(answer)}}})
			}
			return docs, nil
		}}}, tokenizer.Bytes(), 0.1, data.Choice{Learnt: true, Pad: tiny.length, Group: 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": tiny.layers, "n_embd": tiny.width,
		"n_head": tiny.heads, "n_positions": tiny.length, "vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.Preference(cfg, model.Batch{Sequences: tiny.batch, Length: tiny.length, Silent: 256}, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	step, err := task.TrainStep(adamw)
	if err != nil {
		t.Fatal(err)
	}
	weights, spec := cfg.Init(3), *plain.Spec
	var frozen []*tensor.Tensor
	for _, n := range train.Frozen(step) {
		frozen = append(frozen, weights[strings.TrimPrefix(n, model.Reference)])
	}
	spec.Program, spec.Frozen = step.Digest(), train.FrozenRoot(train.Roots(frozen))
	spec.Length, spec.Data = uint32(2*tiny.length), pairs.Manifest(shardTokens).Digest()
	base, err := outer.Genesis(spec.Exchange, train.Params(step), weights)
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, &train.Task{Spec: &spec, Step: step, Corpus: pairs, Frozen: frozen}), base
}

// A worker that computes another loss of preferences, or compares with another model, is convicted over a tile.
func TestOtherPreferences(t *testing.T) {
	task, base := preferenceJob(t)
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for _, i := range distinct(task.Step) {
		checkPart(t, w, r, base, i, 0)
	}
	honest := vouch(t, task, base, unit, nil)
	other := *task
	other.Frozen = append([]*tensor.Tensor{}, task.Frozen...)
	other.Frozen[0] = task.Frozen[0].Clone()
	other.Frozen[0].F32()[0] += 1
	for name, wrong := range map[string]*train.Task{
		"loss":      tampered(t, task, program.Exp, func(op *program.Operator) { op.Kind = program.Neg }),
		"reference": compile(t, &other),
	} {
		convict(t, name, task, wrong, base, honest)
	}
}
