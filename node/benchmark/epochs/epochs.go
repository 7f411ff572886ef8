// Package epochs measures the keys that change the weights of models in stages: how far the outputs of a trained model
// move after many keys, and how well a model predicts whose parts have two keys. It is a part of starling bench
// pipeline.
package epochs

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rekey"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/sentences"
	"github.com/starling-network/starling/node/pretrained"
)

// read is the text that a model learns from in a number of steps, and unread text that it has not read.
func read(steps int) string { return sentences.Of(steps * 64) }

func unread(steps int) string { return sentences.Of(steps*64 + 120)[len(read(steps)):] }

// trained is a small model that predicts the text.
func trained(steps, threads int) (c architecture.Config, tensors map[string]*tensor.Tensor, err error) {
	if c, err = architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": 4, "hidden_size": 32,
		"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "max_position_embeddings": 32,
		"vocab_size": 256}); err != nil {
		return c, nil, err
	}
	loss, err := model.LanguageOf(c, model.Batch{Sequences: 8, Length: 32, Micro: 8})
	if err != nil {
		return c, nil, err
	}
	step, err := loss.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 0.5})
	if err != nil {
		return c, nil, err
	}
	exec, err := cpu.Compile(step, threads)
	if err != nil {
		return c, nil, err
	}
	in := map[string]*tensor.Tensor{}
	for _, i := range step.Inputs() {
		in[i.Name] = tensor.New(i.Shape)
	}
	text := read(steps)
	tensors = c.Init(7)
	for name, t := range tensors {
		in[train.Param+name] = t
	}
	for k := range steps {
		tokens := in["tokens"].I32()
		for i := range tokens {
			tokens[i] = int32(text[(k*len(tokens)+i)%len(text)])
		}
		n := float64(k + 1)
		in["lr"].F32()[0] = 3e-3
		in["c1"].F32()[0], in["c2"].F32()[0] = float32(1/(1-math.Pow(0.9, n))), float32(1/(1-math.Pow(0.95, n)))
		out, err := exec.Run(in)
		if err != nil {
			return c, nil, err
		}
		for name, t := range out {
			if _, ok := in[name]; ok {
				in[name] = t
			}
		}
	}
	for name := range tensors {
		tensors[name] = in[train.Param+name]
	}
	return c, tensors, nil
}

// Report is a trained model whose weights are changed by keys, and one of stages of two keys.
type Report struct {
	Keys       int     `json:"keys"`       // one after the other, each on the weights of the one before
	Difference float64 `json:"difference"` // the largest of a logit from that of the model, after any of them
	Perplexity float64 `json:"perplexity"` // of the model
	Keyed      float64 `json:"keyed"`      // after the last key
	Stitched   float64 `json:"stitched"`   // of two stages of the last key, and two of the key before it: the least
	Times      float64 `json:"times"`      // of the perplexity of the model
	OneStage   float64 `json:"one_stage"`  // of one stage of the last key, and three of the key before it: the least
}

const (
	mostDifferent = 1e-4
	leastStitched = 10.0
)

// keyOf is the source of the key of an epoch.
func keyOf(epoch int) rekey.Source {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(epoch))
	return rand.NewChaCha8(seed)
}

// Steps are so many that the model knows most rules of the text.
const Steps = 600

// Measure trains a model for some steps, changes its weights by many keys in turn, and puts parts of two keys together.
func Measure(ctx context.Context, keys, steps, threads int) (r Report, err error) {
	c, now, err := trained(steps, threads)
	if err != nil {
		return r, err
	}
	look := &viewer{ctx: ctx, threads: threads, text: unread(steps), runs: map[string]*cpu.Exec{}}
	if r.Perplexity, err = look.perplexity(c, now); err != nil {
		return r, err
	}
	want, err := look.logits(c, now)
	if err != nil {
		return r, err
	}
	var before map[string]*tensor.Tensor
	l, err := section.Divide(c, 4)
	if err != nil {
		return r, err
	}
	for r.Keys < keys && ctx.Err() == nil {
		before = now
		if c, now, err = rekey.Apply(c, now, l.Begins(), keyOf(r.Keys)); err != nil {
			return r, err
		}
		r.Keys++
		got, err := look.logits(c, now)
		if err != nil {
			return r, err
		}
		for i := range want {
			r.Difference = max(r.Difference, math.Abs(float64(got[i])-float64(want[i])))
		}
	}
	if r.Keyed, err = look.perplexity(c, now); err != nil {
		return r, err
	}
	if l, err = section.Divide(c, 4); err != nil {
		return r, err
	}
	of := func(parts ...int) (float64, error) {
		mixed := maps.Clone(before)
		for _, part := range parts {
			for _, n := range l.Tensors(part) {
				mixed[n.Name] = now[n.Name]
			}
		}
		return look.perplexity(c, mixed)
	}
	r.Stitched, r.OneStage = math.Inf(1), math.Inf(1)
	for _, half := range [][]int{{1, 2}, {3, 4}, {1, 3}, {2, 4}} {
		p, err := of(half...)
		if err != nil {
			return r, err
		}
		r.Stitched = min(r.Stitched, p)
	}
	for stage := 1; stage <= l.Stages; stage++ {
		p, err := of(stage)
		if err != nil {
			return r, err
		}
		r.OneStage = min(r.OneStage, p)
	}
	r.Times = benchmark.Rounded(r.Stitched/r.Perplexity, 1)
	return r, ctx.Err()
}

// Bars are those of the report.
func (r Report) Bars() []benchmark.Bar {
	return []benchmark.Bar{
		benchmark.AtMost("difference of logits after each of many keys, of the 1e-4 that is allowed",
			r.Difference/mostDifferent, 1),
		benchmark.AtLeast("perplexity of two stages of one key and two of another, of that of the model", r.Times,
			leastStitched),
		benchmark.AtLeast("perplexity of one stage of a key and three of another, of that of the model",
			benchmark.Rounded(r.OneStage/r.Perplexity, 1), leastStitched),
	}
}

// viewer looks at models of one size.
type viewer struct {
	ctx     context.Context
	threads int
	text    string               // that no model has read
	runs    map[string]*cpu.Exec // by the form of a model
}

func (v *viewer) perplexity(c architecture.Config, tensors map[string]*tensor.Tensor) (float64, error) {
	m := pretrained.Mixture{{Prior: 1,
		Model: &pretrained.Model{Config: c, Tensors: tensors, Tokenizer: tokenizer.Bytes()}}}
	e, err := m.Evaluate(v.ctx, v.text, 0, v.threads)
	if err != nil {
		return 0, err
	}
	return benchmark.Rounded(e.Perplexity, 4), nil
}

// logits are those after each token of the begin of the text.
func (v *viewer) logits(c architecture.Config, tensors map[string]*tensor.Tensor) ([]float32, error) {
	form := string(c.JSON())
	if v.runs[form] == nil {
		p, err := model.Logits(c, 1, c.Context())
		if err != nil {
			return nil, err
		}
		if v.runs[form], err = cpu.Compile(p, v.threads); err != nil {
			return nil, err
		}
	}
	ids := make([]int32, c.Context())
	for i := range ids {
		ids[i] = int32(v.text[i])
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(ids, 1, len(ids))}
	for name, t := range tensors {
		in[train.Param+name] = t
	}
	out, err := v.runs[form].Run(in)
	if err != nil {
		return nil, err
	}
	return out["logits"].F32(), nil
}
