package referee

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
)

// rolloutJob makes a task that learns from the rewards of answers that it draws, and its first checkpoint.
func rolloutJob(t *testing.T, r model.Rollout) (*train.Task, *train.Checkpoint) {
	plain, _ := job(t, tiny)
	r.Group, r.Tokens, r.Temperature, r.KL = 4, 3, 0.9, 0.1
	length := tiny.length
	if r.Stages > 1 {
		length = 5 + r.Room()
	}
	answers, err := data.BuildChosen([]source.File{{Format: source.JSONL, Name: "answers",
		Data: []byte(strings.Repeat("{\"a\":\"ask yes\"}\n{\"a\":\"why so\"}\n", 30)),
		Examples: func(object map[string]json.RawMessage) ([]source.Document, error) {
			text := strings.Trim(string(object["a"]), `"`)
			return []source.Document{{Text: text, Learnt: []source.TextRange{{From: 4, To: len(text)}}}}, nil
		}}}, tokenizer.Bytes(), 0.1, data.Choice{Learnt: true, Pad: length, Group: 1, Answer: 3})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": tiny.layers, "n_embd": tiny.width,
		"n_head": tiny.heads, "n_positions": length, "vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	var judges []model.Judge
	for range r.Reward.Judged {
		n, err := textclass.New(cfg, []string{"good"}, length, 256)
		if err != nil {
			t.Fatal(err)
		}
		judges = append(judges, n)
	}
	task, err := model.Reinforce(cfg, model.Batch{Sequences: tiny.batch, Length: length, Silent: 256}, r, judges...)
	if err != nil {
		t.Fatal(err)
	}
	step, err := task.TrainStep(adamw)
	if err != nil {
		t.Fatal(err)
	}
	spec := *plain.Spec
	spec.Length = uint32(length)
	if r.Others > 0 {
		spec.Units = uint32(r.Others) + 1
		spec.Exchange = train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1,
			Policies: spec.Units}
	}
	if r.Apart > 0 {
		spec.Rollout = &train.Rollout{Staleness: 2, Shared: r.Others > 0}
		spec.Steps, spec.Segment = uint32(r.Apart), 1
	}
	spec.Program, spec.Data = step.Digest(), answers.Manifest(shardTokens).Digest()
	weights, before := cfg.Init(3), cfg.Init(3)
	var frozen []*tensor.Tensor
	for i, judge := range judges {
		for name, w := range architecture.Init(judge.Tensors(), 9) {
			before[model.JudgePrefix(i)+name] = w
		}
	}
	for _, n := range train.Frozen(step) {
		frozen = append(frozen, before[strings.TrimPrefix(n, model.Reference)])
	}
	spec.Frozen = train.FrozenRoot(train.Roots(frozen))
	weights["transformer.ln_f.bias"].F32()[0] = 1
	for _, letter := range "yes o" { // those of the answers are likely, so that some are right
		weights["transformer.wte.weight"].F32()[int(letter)*tiny.width] = 4
	}
	base, err := outer.Genesis(spec.Exchange, train.Params(step), weights)
	if err != nil {
		t.Fatal(err)
	}
	for u, list := range base.Outer { // other models than the first
		if r.Others > 0 {
			base.Outer[u] = clones(list)
			base.Outer[u][0].F32()[u] += 0.25
		}
	}
	return compile(t, &train.Task{Spec: &spec, Step: step, Corpus: answers, Frozen: frozen}), base
}

func clones(list []*tensor.Tensor) (out []*tensor.Tensor) {
	for _, x := range list {
		out = append(out, x.Clone())
	}
	return out
}

// A worker that draws other tokens, by other noise or another seed, draws from another model, or rewards other answers
// is convicted over a tile.
func TestOtherRollouts(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rollout.Reward{Exact: 1, Prefix: 1}})
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for n, i := range distinct(task.Step) {
		if *long || n%8 == 0 {
			checkPart(t, w, r, base, i, 0)
		}
	}
	honest := vouch(t, task, base, unit, nil)
	stale := *base
	stale.Params = nil
	for _, p := range base.Params {
		p = p.Clone()
		p.F32()[0] += 0.5
		stale.Params = append(stale.Params, p)
	}
	other := func(of program.Kind, nth int, to program.Kind) *train.Task {
		return tamperedAt(t, task, of, nth, func(op *program.Operator) { op.Kind = to })
	}
	held := *task // near another model
	held.Frozen = append([]*tensor.Tensor{}, task.Frozen...)
	held.Frozen[0] = task.Frozen[0].Clone()
	held.Frozen[0].F32()[0] += 1
	for name, wrong := range map[string]*train.Task{
		"reference":   compile(t, &held),
		"first token": other(program.ReduceMin, 1, program.ReduceMax),
		"last token":  other(program.ReduceMin, 3, program.ReduceMax),
		"noise":       other(program.Log, 0, program.Abs),
		"reward":      other(program.Equal, 3, program.NotEqual),
		"seed":        respecified(task, func(s *train.Spec) { s.Seed++ }),
	} {
		if !*long && name != "last token" && name != "seed" {
			continue
		}
		convict(t, name, task, wrong, base, honest)
	}
	liar := vouch(t, task, &stale, unit, nil)
	if g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest); !g.Verdict.AsserterLies {
		t.Errorf("another model: verdict %+v", *g.Verdict)
	}
}

// A worker that rewards answers by another function than the author's, or with fewer steps than they are due, is
// convicted over the rewards of a few answers: the chain calls the function, too.
func TestOtherRewards(t *testing.T) {
	rule := func(source string, steps int) []byte {
		r := grade.Rule{Terms: []grade.Term{{Kind: grade.Contains, Key: grade.Completion, Weight: 1},
			{Kind: grade.Starlark, Weight: 1, Steps: steps, Source: "def reward(prompt, answer, fields):\n    " + source}}}
		letters := make([]string, 256)
		for i := range letters {
			letters[i] = string([]byte{byte(i)})
		}
		r.Pieces, r.Lengths = grade.Vocabulary(letters)
		return r.Encode()
	}
	const honestly, enough = "return len([c for c in answer.elems() if c in fields['completion'] or c in prompt])", 1 << 14
	backwards := strings.Replace(honestly, "return ", "return -", 1)
	task, base := rolloutJob(t, model.Rollout{Reward: rollout.Reward{Rule: rule(honestly, enough)}})
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	graded := -1
	for i := range task.Step.Ops {
		if task.Step.Ops[i].Kind == program.Grade {
			graded = i
			checkPart(t, w, r, base, i, 0)
		}
	}
	if graded < 0 {
		t.Fatal("no operator rewards answers")
	}
	honest := vouch(t, task, base, unit, nil)
	for name, other := range map[string][]byte{
		"the other way round": rule(backwards, enough),
		"fewer steps":         rule(honestly, 40),
	} {
		g, err := grade.Decode(other)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := g.Cost(3)
		if err != nil {
			t.Fatal(err)
		}
		wrong := tamperedAt(t, task, program.Grade, 0, func(op *program.Operator) {
			op.Data, op.Ints = other, []int64{int64(cost)}
		})
		convict(t, name, task, wrong, base, honest)
	}
}

// A worker that scores answers with another reward model, or skips a layer of it, is convicted over a tile, and so is
// one that rewards answers without it.
func TestOtherRewardModels(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rollout.Reward{Judged: []float64{1}}})
	score := slices.IndexFunc(train.Frozen(task.Step), func(n string) bool {
		return n == model.JudgePrefix(0)+textclass.ScoreName
	})
	if score < 0 {
		t.Fatal("no reward model is read")
	}
	honest := vouch(t, task, base, unit, nil)
	changed := func(at, by int) *train.Task {
		other := *task
		other.Frozen = slices.Clone(task.Frozen)
		other.Frozen[at] = task.Frozen[at].Clone()
		for i := range other.Frozen[at].F32() {
			other.Frozen[at].F32()[i] *= float32(by)
		}
		return compile(t, &other)
	}
	convict(t, "another score", task, changed(score, -1), base, honest)
	if *long {
		first := slices.IndexFunc(train.Frozen(task.Step), model.IsJudge)
		convict(t, "another embedding", task, changed(first, -1), base, honest)
		w, r := witness.New(task, base, unit, nil, shardTokens), newReferee(task.Spec, task.Step)
		for _, i := range distinct(task.Step) {
			checkPart(t, w, r, base, i, 0)
		}
	}
}

// A worker that draws from another nucleus than the job is convicted over a tile.
func TestOtherNuclei(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rollout.Reward{Exact: 1, Prefix: 1}, TopP: 0.7})
	honest := vouch(t, task, base, unit, nil)
	nth := -1 // of the constants that is the share
	for _, op := range task.Step.Ops {
		if op.Kind == program.Constant {
			if nth++; bytes.Equal(op.Data, tensor.FromF32([]float32{0.7}).Bytes()) {
				break
			}
		}
	}
	wrong := tamperedAt(t, task, program.Constant, nth, func(op *program.Operator) {
		op.Data = tensor.FromF32([]float32{0.01}).Bytes()
	})
	convict(t, "another share", task, wrong, base, honest)
	if *long {
		w, r := witness.New(task, base, unit, nil, shardTokens), newReferee(task.Spec, task.Step)
		for _, i := range distinct(task.Step) {
			checkPart(t, w, r, base, i, 0)
		}
	}
}
