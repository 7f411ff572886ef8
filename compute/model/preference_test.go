package model

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

const testBeta = 0.3

// preferences are pairs of texts whose last two tokens are answers.
func preferences(c architecture.Config, pairs int) (batch *tensor.Tensor, b Batch) {
	b = Batch{Sequences: pairs, Length: 6, Silent: c.VocabSize()}
	batch = someTokens(c, pairs, 2*b.Length+1, 5)
	ids := batch.I32()
	for i := range ids {
		if at := i % (2*b.Length + 1) % b.Length; at < b.Length-2 {
			ids[i] += int32(b.Silent)
		}
	}
	return batch, b
}

// preferenceModels are a model that is trained whole, and one with an adapter.
func preferenceModels(t *testing.T) map[string]architecture.Config {
	return map[string]architecture.Config{"gpt2": tiny(t)["gpt2"], "llama-tied": tiny(t)["llama-tied"],
		"llama-lora": adaptedModels(t)["llama-lora"]}
}

// withReference are weights, with those of another model as the reference of a task that has one.
func withReference(task Task, w, before state) state {
	all := both(w, nil)
	for _, n := range task.Frozen {
		if of, ok := strings.CutPrefix(n.Name, Reference); ok {
			all[n.Name] = before[of]
		}
	}
	return all
}

// answer is the log-probability of the spoken tokens of a text.
func answer(c architecture.Config, w state, text []int32, silent int) (sum float64) {
	plain := make([]int32, len(text))
	for i, id := range text {
		plain[i] = id % int32(silent)
	}
	for i, logits := range (reference{c, w}).logits(plain[:len(plain)-1]) {
		if text[i+1] < int32(silent) {
			sum -= crossEntropyOf(logits, plain[i+1])
		}
	}
	return sum
}

// The loss of a model that was trained whole is the published one, computed with plain loops in float64.
func TestPreferenceMatchesReference(t *testing.T) {
	const pairs = 4
	for name, c := range preferenceModels(t) {
		if _, adapted := c.LoRA(); adapted {
			continue
		}
		batch, b := preferences(c, pairs)
		task, err := Preference(c, b, testBeta)
		mustTask(t, task, err)
		now, before := strongWeights(c.Tensors()), c.Init(7)
		in := evalInputs(task, taskInputs(task, withReference(task, now, before), state{"tokens": batch},
			optimizer.AdamW{}, 0))
		p, err := task.Eval()
		out := mustRun(t, mustCompile(t, p, err), in)
		var loss, won, margins float64
		for i := range pairs {
			row := batch.I32()[i*(2*b.Length+1):]
			gain := func(text []int32) float64 {
				return answer(c, now, text, b.Silent) - answer(c, before, text, b.Silent)
			}
			margin := testBeta * (gain(row[:b.Length]) - gain(row[b.Length:2*b.Length]))
			loss += math.Log1p(math.Exp(-margin)) / pairs
			margins += margin / pairs
			if margin > 0 {
				won += 1. / pairs
			}
		}
		checkNear(t, name+" loss", scalar(out["loss"]), loss, 1e-4)
		checkNear(t, name+" margin", scalar(out["margin"]), margins, 1e-4)
		checkNear(t, name+" accuracy", scalar(out["accuracy"]), won, 0)
	}
}

// Before the first step the model is its reference, and the loss is ln 2, to the bit. Steps lower it, and leave the
// reference as it is.
func TestPreferenceLearns(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}
	for name, c := range preferenceModels(t) {
		batch, b := preferences(c, 4)
		task, err := Preference(c, b, testBeta)
		mustTask(t, task, err)
		w := c.Init(7)
		if _, adapted := c.LoRA(); adapted {
			w = both(w, c.InitAdapters(4))
		}
		p, err := task.TrainStep(o)
		e := mustCompile(t, p, err)
		in := taskInputs(task, withReference(task, w, c.Init(7)), state{"tokens": batch}, o, 0.05)
		var last float64
		for step := range 40 {
			out := mustRun(t, e, in)
			if last = scalar(out["loss"]); step == 0 && float32(last) != float32(math.Ln2) {
				t.Errorf("%s: the first loss is %v", name, last)
			}
			carry(task, in, out)
		}
		if last > 0.6 {
			t.Errorf("%s: the loss after 40 steps is %v", name, last)
		}
	}
}

func TestPreferenceGradients(t *testing.T) {
	for name, c := range preferenceModels(t) {
		batch, b := preferences(c, 2)
		task, err := Preference(c, b, testBeta)
		mustTask(t, task, err)
		w := strongWeights(c.Tensors())
		if _, adapted := c.LoRA(); adapted {
			w = both(w, strongWeights(c.Adapters()))
		}
		checkGradients(t, name, task, withReference(task, w, c.Init(7)), state{"tokens": batch}, 1e-2)
	}
}

// Parts of a batch give the loss and the gradients of the whole.
func TestPreferenceInParts(t *testing.T) {
	o := optimizer.AdamW{Eps: 1e-8}
	for name, c := range preferenceModels(t) {
		batch, b := preferences(c, 4)
		w := both(strongWeights(c.Tensors()), strongWeights(c.Adapters()))
		var whole state
		for _, b.Micro = range []int{0, 2, 1} {
			task, err := Preference(c, b, testBeta)
			mustTask(t, task, err)
			in := taskInputs(task, withReference(task, w, c.Init(7)), state{"tokens": batch}, o, 0)
			p, err := task.TrainStep(o)
			out := mustRun(t, mustCompile(t, p, err), in)
			if b.Micro == 0 {
				whole = out
				continue
			}
			for n, x := range whole {
				for i, want := range x.F32() {
					checkNear(t, fmt.Sprintf("%s: %s[%d] in parts of %d", name, n, i, b.Micro), float64(out[n].F32()[i]),
						float64(want), 2e-5)
				}
			}
		}
	}
}

func TestPreferenceErrors(t *testing.T) {
	c := tiny(t)["gpt2"]
	for _, wrong := range []struct {
		b    Batch
		beta float64
	}{{Batch{Sequences: 2, Length: 4, Silent: 11}, 0}, {Batch{Sequences: 2, Length: 4, Silent: 11}, math.NaN()},
		{Batch{Sequences: 2, Length: 4}, 0.1}, {Batch{Sequences: 2, Length: 400, Silent: 11}, 0.1},
		{Batch{Sequences: 3, Length: 4, Silent: 11, Micro: 2}, 0.1}} {
		if _, err := Preference(c, wrong.b, wrong.beta); !errors.Is(err, ErrStep) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
