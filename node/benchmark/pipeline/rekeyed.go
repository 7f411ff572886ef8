package pipeline

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rekey"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/pretrained"
)

// Rekeyed is a trained model whose weights are changed by keys, and one of stages of two keys.
type Rekeyed struct {
	Keys       int     `json:"keys"`       // one after the other, each on the weights of the one before
	Difference float64 `json:"difference"` // the largest of a logit from that of the model, after any of them
	Perplexity float64 `json:"perplexity"` // of the model
	Keyed      float64 `json:"keyed"`      // after the last key
	Stitched   float64 `json:"stitched"`   // of one stage of the last key, and the rest of the key before it
	Times      float64 `json:"times"`      // of the perplexity of the model; the least of all stages and the front
}

const (
	rekeyings     = 1000
	rekeySteps    = 60
	mostDifferent = 1e-4
	leastStitched = 10.0
)

// words is the source of the key of an epoch.
func words(epoch int) rekey.Source {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(epoch))
	return rand.NewChaCha8(seed)
}

// rekeyed trains a model, changes its weights by many keys in turn, and puts stages of two keys together.
func rekeyed(ctx context.Context, threads int) (r Rekeyed, err error) {
	z := size{family: "llama", layers: 4, width: 32, length: 32, sequences: 16, microbatch: 8, steps: rekeySteps,
		text: sentences(20000)}
	j, err := newJob(z, 2, threads)
	if err != nil {
		return r, err
	}
	trained, err := j.task.Run(j.base, unit, nil, nil)
	if err != nil {
		return r, err
	}
	now := map[string]*tensor.Tensor{}
	for i, name := range train.StateNames(j.task.Step) {
		if n, ok := strings.CutPrefix(name, train.Param); ok {
			now[n] = trained.End[i]
		}
	}
	c := j.config
	look := &viewer{ctx: ctx, threads: threads, text: z.text[len(z.text)-1500:], runs: map[bool]*cpu.Exec{}}
	if r.Perplexity, err = look.perplexity(c, now); err != nil {
		return r, err
	}
	want, err := look.logits(c, now)
	if err != nil {
		return r, err
	}
	var before map[string]*tensor.Tensor
	for r.Keys < rekeyings && ctx.Err() == nil {
		before = now
		if c, now, err = rekey.Apply(c, now, words(r.Keys)); err != nil {
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
	l, err := section.Divide(c, 4)
	if err != nil {
		return r, err
	}
	r.Stitched = math.Inf(1)
	for part := range l.Stages + 1 {
		mixed := maps.Clone(before)
		for _, n := range l.Tensors(part) {
			mixed[n.Name] = now[n.Name]
		}
		p, err := look.perplexity(c, mixed)
		if err != nil {
			return r, err
		}
		r.Stitched = min(r.Stitched, p)
	}
	r.Times = benchmark.Rounded(r.Stitched/r.Perplexity, 1)
	return r, ctx.Err()
}

func (r Rekeyed) bars() []benchmark.Bar {
	return []benchmark.Bar{
		benchmark.AtMost("difference of logits after each of 1,000 keys, of the 1e-4 that is allowed",
			r.Difference/mostDifferent, 1),
		benchmark.AtLeast("perplexity of stages of two keys together, as a multiple of that of the model", r.Times,
			leastStitched),
	}
}

// viewer looks at models of one size.
type viewer struct {
	ctx     context.Context
	threads int
	text    string             // that no model has read
	runs    map[bool]*cpu.Exec // of models with a tied output layer, and of others
}

func (v *viewer) perplexity(c architecture.Config, tensors map[string]*tensor.Tensor) (float64, error) {
	m := pretrained.Mixture{{Model: &pretrained.Model{Config: c, Tensors: tensors, Tokenizer: tokenizer.Bytes()}, Prior: 1}}
	e, err := m.Evaluate(v.ctx, v.text, 0, v.threads)
	if err != nil {
		return 0, err
	}
	return benchmark.Rounded(e.Perplexity, 4), nil
}

// logits are those after each token of the begin of the text.
func (v *viewer) logits(c architecture.Config, tensors map[string]*tensor.Tensor) ([]float32, error) {
	if v.runs[c.Tied] == nil {
		p, err := model.Logits(c, 1, c.Context())
		if err != nil {
			return nil, err
		}
		if v.runs[c.Tied], err = cpu.Compile(p, v.threads); err != nil {
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
	out, err := v.runs[c.Tied].Run(in)
	if err != nil {
		return nil, err
	}
	return out["logits"].F32(), nil
}
