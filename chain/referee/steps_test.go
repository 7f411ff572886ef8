package referee

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
)

// Whatever optimizer takes the steps, each of its operators is recomputed, and who takes another step is convicted.
func TestStepsOfEveryOptimizer(t *testing.T) {
	all := optimizer.Common{WeightDecay: 0.1, MaxGradNorm: 1}
	for _, c := range []struct {
		o       optimizer.Optimizer
		is, lie program.Kind
	}{
		{optimizer.SGD{Common: all}, program.Sub, program.Add},
		{optimizer.SGD{Common: all, Momentum: 0.9, Nesterov: true}, program.Sub, program.Add},
		{optimizer.Lion{Common: all, Beta1: 0.9, Beta2: 0.99}, program.Sign, program.Neg},
		{optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Half: true}, program.AdamP, 0},
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

// A step whose batch is computed in parts, of which some tokens are read only, or whose layers read bfloat16, is
// recomputed like any other.
func TestStepsInParts(t *testing.T) {
	for _, half := range []bool{false, true} {
		stepsInParts(t, half)
	}
}

func stepsInParts(t *testing.T, half bool) {
	plain, base := job(t, tiny)
	cfg, err := model.Parse(model.GPT2, map[string]any{
		"n_layer": tiny.layers, "n_embd": tiny.width, "n_head": tiny.heads, "n_positions": tiny.length, "vocab_size": 256,
	})
	if err != nil {
		t.Fatal(err)
	}
	source := data.Source{Format: data.JSONL, Field: "x", Name: "x", Data: []byte(strings.Repeat(
		"{\"x\": [\"What is your name, and where are you from?\", \"I am here\"]}\n", 100)),
		Render: func(raw []byte) (data.Document, error) {
			return data.Document{Text: string(raw), Said: []data.Span{{From: len(raw) - 12, To: len(raw)}}}, nil
		}}
	words, err := data.BuildChosen([]data.Source{source}, tokenizer.Bytes(), 0, data.Choice{Said: true})
	if err != nil {
		t.Fatal(err)
	}
	lm, err := model.LanguageOf(cfg, model.Batch{Sequences: tiny.batch, Length: tiny.length, Micro: 1, Silent: 256,
		Half: half})
	if err != nil {
		t.Fatal(err)
	}
	task := respecified(plain, func(s *train.Spec) { s.Data = words.Manifest(shardTokens).Digest() })
	if task.Step, err = lm.TrainStep(adamw); err != nil {
		t.Fatal(err)
	}
	task.Spec.Program, task.Corpus = task.Step.Digest(), words
	compile(t, task)
	w := NewWitness(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for i := range task.Step.Ops {
		checkPart(t, w, r, base, i, 0)
	}
	honest := vouch(t, task, base, unit, nil)
	for _, k := range []program.Kind{program.Not, program.AddRows} {
		liar := vouch(t, tampered(t, task, k, func(op *program.Operator) {
			if op.Kind = program.Identity; k == program.AddRows {
				op.In = op.In[:1]
			}
		}), base, unit, nil)
		g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
		if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) {
			t.Errorf("%s: verdict %+v", k, *v)
		}
	}
}
