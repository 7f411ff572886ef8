package referee

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
)

// Each operator of every optimizer is recomputed, and a worker that takes another step is convicted.
func TestStepsOfEveryOptimizer(t *testing.T) {
	all := optimizer.Common{WeightDecay: 0.1, MaxGradNorm: 1}
	for _, c := range []struct {
		o       optimizer.Optimizer
		is, lie program.Kind
	}{
		{optimizer.SGD{Common: all}, program.Sub, program.Add},
		{optimizer.SGD{Common: all, Momentum: 0.9, Nesterov: true}, program.Sub, program.Add},
		{optimizer.Lion{Common: all, Beta1: 0.9, Beta2: 0.99}, program.Sign, program.Neg},
		{optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Storage: optimizer.Half}, program.AdamP, 0},
		{optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Storage: optimizer.Blocks}, program.AdamP, 0},
		{optimizer.Adafactor{Common: all, Beta2: 0.95, Threshold: 1}, program.Max, program.Min},
		{optimizer.Adafactor{Common: all, Beta1: 0.9, Beta2: 0.95, Threshold: 1}, program.Max, program.Min},
	} {
		everyKind(t, tiny, c.o)
		task, base := jobOf(t, tiny, c.o)
		honest := vouch(t, task, base, unit, nil)
		liar := vouch(t, tampered(t, task, c.is, func(op *program.Operator) {
			if op.Kind = c.lie; c.lie == 0 {
				op.Kind, op.Ints = c.is, []int64{op.Ints[0], 0x3f000000}
			}
		}), base, unit, nil)
		g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
		if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) {
			t.Errorf("%#v: verdict %+v", c.o, *v)
		}
		if g = play(t, task, base, honest.commit, differ(honest.commit, liar.commit), honest, liar); g.Verdict.AsserterLies {
			t.Errorf("%#v: an honest worker lost: %+v", c.o, *g.Verdict)
		}
	}
}

// A step whose batch is computed in parts, of which some tokens are read only, or whose layers read bfloat16 or
// multiply integers, is recomputed like any other.
func TestStepsInParts(t *testing.T) {
	stepsInParts(t, model.Batch{}, program.Not, program.AddRows)
	stepsInParts(t, model.Batch{Half: true}, program.Not, program.AddRows)
	stepsInParts(t, model.Batch{Form: exact.Form{Bits: 15, Block: 32}}, program.DotExact)
	stepsInParts(t, model.Batch{Form: exact.Form{Bits: 8, Block: 32}}, program.DotExact)
}

// stepsInParts plays against workers whose operators of some kinds are wrong.
func stepsInParts(t *testing.T, b model.Batch, wrong ...program.Kind) {
	plain, base := job(t, tiny)
	cfg, err := architecture.Parse(architecture.GPT2, map[string]any{
		"n_layer": tiny.layers, "n_embd": tiny.width, "n_head": tiny.heads, "n_positions": tiny.length, "vocab_size": 256,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := source.File{Format: source.JSONL, Field: "x", Name: "x", Data: []byte(strings.Repeat(
		"{\"x\": [\"What is your name, and where are you from?\", \"I am here\"]}\n", 100)),
		Examples: func(object map[string]json.RawMessage) ([]source.Document, error) {
			raw := object["x"]
			return []source.Document{{Text: string(raw), Learnt: []source.TextRange{{From: len(raw) - 12, To: len(raw)}}}}, nil
		}}
	words, err := data.BuildChosen([]source.File{file}, tokenizer.Bytes(), 0, data.Choice{Learnt: true})
	if err != nil {
		t.Fatal(err)
	}
	b.Sequences, b.Length, b.Micro, b.Silent = tiny.batch, tiny.length, 1, 256
	lm, err := model.LanguageOf(cfg, b)
	if err != nil {
		t.Fatal(err)
	}
	task := respecified(plain, func(s *train.Spec) { s.Data = words.Manifest(shardTokens).Digest() })
	if task.Step, err = lm.TrainStep(adamw); err != nil {
		t.Fatal(err)
	}
	task.Spec.Program, task.Corpus = task.Step.Digest(), words
	compile(t, task)
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	seen := map[string]bool{}
	for _, i := range distinct(task.Step) {
		if key := section(task.Step.Ops[i]); *long || !seen[key] {
			seen[key] = true
			checkPart(t, w, r, base, i, 0)
		}
	}
	honest := vouch(t, task, base, unit, nil)
	for _, k := range wrong {
		liar := vouch(t, tampered(t, task, k, func(op *program.Operator) {
			switch op.Kind = program.Identity; k {
			case program.AddRows:
				op.In = op.In[:1]
			case program.DotExact: // it multiplies in float32
				op.Kind, op.Ints = program.Dot, op.Ints[:len(op.Ints)-2]
			}
		}), base, unit, nil)
		g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
		if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) {
			t.Errorf("%s: verdict %+v", k, *v)
		}
	}
}
