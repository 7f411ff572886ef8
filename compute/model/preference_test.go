package model

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

const (
	testPairs = 2
	testBeta  = 0.3
)

var testClip = Clip{Low: 0.2, High: 0.28, Limit: 4}

// someMask counts the tokens from 1+row%2 on, and cuts the last token off every third row.
func someMask(rows, length int) *tensor.Tensor {
	mask := tensor.New(tensor.Make(tensor.Float32, rows, length))
	for i := range mask.F32() {
		if row, at := i/length, i%length; at >= 1+row%2 && (row%3 != 0 || at < length-1) {
			mask.F32()[i] = 1
		}
	}
	return mask
}

// referenceLogProbs are those of tokens [rows, length+1] by plain loops.
func referenceLogProbs(c Config, w state, tokens []int32, rows int) (list []float64) {
	length := len(tokens) / rows
	for r := range rows {
		sequence := tokens[r*length:][:length]
		for i, row := range (reference{c, w}).logits(sequence[:length-1]) {
			list = append(list, -crossEntropyOf(row, sequence[i+1]))
		}
	}
	return list
}

// shiftedWeights are near strongWeights: those of a model that was trained on from it.
func shiftedWeights(list []Named) state {
	w := strongWeights(list)
	for i, n := range list {
		x := noise(77, uint64(i), n.Shape.Elements()).F32()
		for j := range x {
			w[n.Name].F32()[j] += float32(0.05 * x[j])
		}
	}
	return w
}

// lossTrials are the losses on language models on small batches, for every family and with adapters.
func lossTrials(t testing.TB) map[string]trial {
	models := tiny(t)
	models["llama-lora"] = adaptedModels(t)["llama-lora"]
	trials := map[string]trial{}
	for name, c := range models {
		w := shiftedWeights(c.Tensors())
		for n, x := range shiftedWeights(c.Adapters()) {
			w[n] = x
		}
		const rows = 2 * testPairs
		tokens, mask := someTokens(c, rows, testLength+1, 6), someMask(rows, testLength)
		base := state{"tokens": tokens, "mask": mask}

		task, err := MaskedLanguage(c, rows, testLength)
		trials[name+" masked"] = trial{mustTask(t, task, err), w, base}

		plain := c
		plain.lora = nil
		p, err := LogProbs(plain, rows, testLength)
		old := mustRun(t, mustCompile(t, p, err), both(inputs(strongWeights(c.Tensors()), tokens), state{"mask": mask}))
		task, err = DPO(c, testBeta, testPairs, testLength)
		trials[name+" dpo"] = trial{mustTask(t, task, err), w, both(base, state{"reference": old["total"]})}

		task, err = GRPO(c, testClip, rows, testLength)
		trials[name+" grpo"] = trial{mustTask(t, task, err), w, both(base, state{
			"behaviour": tensor.New(mask.Shape), "advantage": tensor.FromF32([]float32{1, -0.5, 0.25, -1.5}, rows)})}
		spread(t, c, trials[name+" grpo"])
	}
	return trials
}

// spread sets the behaviour such that the ratios are far from where the clip has kinks, on both sides of each.
func spread(t testing.TB, c Config, tr trial) {
	rows := tr.batch["tokens"].Shape.Dims[0]
	p, err := LogProbs(c, rows, testLength)
	in := both(state{"tokens": tr.batch["tokens"], "mask": tr.batch["mask"]}, state{})
	for name, x := range tr.w {
		in["p/"+name] = x
	}
	now := mustRun(t, mustCompile(t, p, err), in)["logprobs"].F32()
	ratios := []float64{1, 0.9, 1.1, 0.5, 1.6, 7}
	for i := range now {
		tr.batch["behaviour"].F32()[i] = now[i] - float32(math.Log(ratios[(i+i/testLength)%len(ratios)]))
	}
}

func TestLossGradients(t *testing.T) {
	for name, tr := range lossTrials(t) {
		checkGradients(t, name, tr.task, tr.w, tr.batch, 3e-3)
	}
}

// TestLossesMatchReference computes the three losses from log-probabilities of plain loops.
func TestLossesMatchReference(t *testing.T) {
	for name, c := range tiny(t) {
		trials := lossTrials(t)
		tr := trials[name+" masked"]
		const rows = 2 * testPairs
		mask := tr.batch["mask"].F32()
		now := referenceLogProbs(c, tr.w, tr.batch["tokens"].I32(), rows)
		before := referenceLogProbs(c, strongWeights(c.Tensors()), tr.batch["tokens"].I32(), rows)
		eval := func(loss string) state {
			tr := trials[name+" "+loss]
			p, err := tr.task.Eval()
			return mustRun(t, mustCompile(t, p, err), evalInputs(tr.task, taskInputs(tr.task, tr.w, tr.batch, AdamW{}, 0)))
		}
		var total, surprise, gained, divergence, clipped float64
		gain := make([]float64, rows)
		behaviour, advantage := trials[name+" grpo"].batch["behaviour"].F32(), trials[name+" grpo"].batch["advantage"].F32()
		for i, on := range mask {
			if on == 0 {
				continue
			}
			total++
			surprise -= now[i]
			gain[i/testLength] += now[i] - before[i]
			r, a := math.Exp(now[i]-float64(behaviour[i])), float64(advantage[i/testLength])
			free, bounded := min(r, testClip.Limit)*a, max(1-testClip.Low, min(r, 1+testClip.High))*a
			gained += min(free, bounded)
			divergence += r - 1 - math.Log(r)
			if min(free, bounded) != r*a {
				clipped++
			}
		}
		checkNear(t, name+" masked loss", scalar(eval("masked")["loss"]), surprise/total, 1e-4)
		out := eval("grpo")
		checkNear(t, name+" GRPO loss", scalar(out["loss"]), -gained/total, 1e-3)
		checkNear(t, name+" GRPO divergence", scalar(out["divergence"]), divergence/total, 1e-3)
		checkNear(t, name+" GRPO clipped", scalar(out["clipped"]), clipped/total, 1e-6)
		out = eval("dpo")
		var loss, margin, won float64
		for i := range testPairs {
			m := testBeta * (gain[i] - gain[testPairs+i])
			loss += math.Log1p(math.Exp(-m)) / testPairs
			margin += m / testPairs
			if m > 0 {
				won += 1.0 / testPairs
			}
		}
		checkNear(t, name+" DPO loss", scalar(out["loss"]), loss, 1e-4)
		checkNear(t, name+" DPO margin", scalar(out["margin"]), margin, 2e-4)
		checkNear(t, name+" DPO accuracy", scalar(out["accuracy"]), won, 1e-6)
	}
}

// TestDPOStartsAtLn2: where the model is its own reference the loss is ln 2 to the last bit, and the gradients of a pair
// and of the same pair exchanged are opposite.
func TestDPOStartsAtLn2(t *testing.T) {
	o := AdamW{Eps: 1e-8}
	for name, c := range tiny(t) {
		w, tokens, mask := strongWeights(c.Tensors()), someTokens(c, 2, testLength+1, 6), someMask(2, testLength)
		task, err := DPO(c, testBeta, 1, testLength)
		mustTask(t, task, err)
		step := func() state {
			p, err := LogProbs(c, 2, testLength)
			batch := state{"tokens": tokens, "mask": mask}
			batch["reference"] = mustRun(t, mustCompile(t, p, err), both(inputs(w, tokens), state{"mask": mask}))["total"]
			p, err = task.TrainStep(o)
			out := mustRun(t, mustCompile(t, p, err), taskInputs(task, w, batch, o, 0))
			if out["loss"].F32()[0] != kernel.Log(2) || scalar(out["margin"]) != 0 {
				t.Errorf("%s: the loss is %v with margin %v, want ln 2 and 0", name, scalar(out["loss"]), scalar(out["margin"]))
			}
			return out
		}
		one := step()
		for _, x := range []*tensor.Tensor{tokens, mask} {
			half := len(x.Bytes()) / 2
			row := append([]byte{}, x.Bytes()[:half]...)
			copy(x.Bytes(), x.Bytes()[half:])
			copy(x.Bytes()[half:], row)
		}
		other := step()
		for _, n := range c.Tensors() {
			for i, g := range one["m/"+n.Name].F32() {
				checkNear(t, fmt.Sprintf("%s: exchanged gradient %d of %s", name, i, n.Name), float64(other["m/"+n.Name].F32()[i]), -float64(g), 1e-5)
			}
		}
	}
}

// TestMask: all tokens count as in Language, tokens that do not count change nothing, and none give no loss.
func TestMask(t *testing.T) {
	for name, c := range tiny(t) {
		w, tokens := strongWeights(c.Tensors()), someTokens(c, testBatch, testLength+1, 6)
		task, err := MaskedLanguage(c, testBatch, testLength)
		mustTask(t, task, err)
		p, err := task.Eval()
		e := mustCompile(t, p, err)
		loss := func(mask *tensor.Tensor) float64 {
			return scalar(mustRun(t, e, both(inputs(w, tokens), state{"mask": mask}))["loss"])
		}
		none := tensor.New(tensor.Make(tensor.Float32, testBatch, testLength))
		all := none.Clone()
		for i := range all.F32() {
			all.F32()[i] = 1
		}
		checkNear(t, name+" loss of all", loss(all), reference{c, w}.loss(tokens.I32(), testBatch), 1e-4)
		checkNear(t, name+" loss of none", loss(none), 0, 0)
		padded := all.Clone()
		padded.F32()[testLength-1] = 0 // the last token of the first sequence
		before := loss(padded)
		tokens.I32()[testLength] = (tokens.I32()[testLength] + 1) % int32(c.VocabSize())
		checkNear(t, name+" loss with other padding", loss(padded), before, 0)
	}
}

// TestGRPOClips: the step away from a bad answer is bounded only by the limit, all others by the clip.
func TestGRPOClips(t *testing.T) {
	c := tiny(t)["gpt2"]
	tr := lossTrials(t)["gpt2 grpo"]
	o := AdamW{Eps: 1e-8}
	p, err := tr.task.TrainStep(o)
	e := mustCompile(t, p, err)
	for _, tc := range []struct {
		ratio, advantage float64
		free             bool
	}{{1, 1, true}, {1, -1, true}, {1.5, 1, false}, {1.5, -1, true}, {0.5, 1, true}, {0.5, -1, false}, {5, -1, false}, {5, 1, false}} {
		batch := both(tr.batch, state{"behaviour": tensor.New(tr.batch["mask"].Shape), "advantage": tensor.New(tensor.Make(tensor.Float32, 4))})
		flat := trial{tr.task, tr.w, batch}
		spread(t, c, flat)
		ratios := []float64{1, 0.9, 1.1, 0.5, 1.6, 7}
		for i := range batch["behaviour"].F32() {
			batch["behaviour"].F32()[i] += float32(math.Log(ratios[(i+i/testLength)%len(ratios)]) - math.Log(tc.ratio))
		}
		for i := range batch["advantage"].F32() {
			batch["advantage"].F32()[i] = float32(tc.advantage)
		}
		out := mustRun(t, e, taskInputs(tr.task, tr.w, batch, o, 0))
		if got := scalar(out["grad_norm"]) > 0; got != tc.free {
			t.Errorf("ratio %g, advantage %g: gradient norm %g", tc.ratio, tc.advantage, scalar(out["grad_norm"]))
		}
		want := 1.0
		if tc.free {
			want = 0
		}
		checkNear(t, fmt.Sprintf("%+v clipped", tc), scalar(out["clipped"]), want, 0)
	}
}

func TestLossErrors(t *testing.T) {
	c := tiny(t)["gpt2"]
	failed := func(_ Task, err error) error { return err }
	for i, err := range []error{
		failed(MaskedLanguage(c, 0, 1)), failed(MaskedLanguage(c, 1, 9)), failed(DPO(c, 0, 1, 1)), failed(DPO(c, math.NaN(), 1, 1)),
		failed(DPO(c, 1, 0, 1)), failed(DPO(c, 1, math.MaxInt/2+1, 1)), failed(GRPO(c, Clip{}, 1, 1)),
		failed(GRPO(c, Clip{Low: 0.2, High: 0.2, Limit: 1}, 1, 1)), failed(GRPO(c, testClip, 1, 9)), second(LogProbs(c, 1, 0)),
	} {
		if !errors.Is(err, ErrStep) {
			t.Errorf("case %d: got %v, want ErrStep", i, err)
		}
	}
}
