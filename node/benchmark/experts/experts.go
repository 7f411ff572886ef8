// Package experts measures a mixture of experts on the text that their jobs hold out, with its experts and with one
// model that is trained on all of their data in as many steps. It is the engine of starling bench experts.
package experts

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/experts"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/pretrained"
)

// Options say what is measured.
type Options struct {
	Jobs     []*job.Job // of the experts of a file
	Threads  int
	Progress func(string)
}

// Domain has the losses on the held-out text of an expert, in nats a token.
type Domain struct {
	Name    string  `json:"name"`
	Tokens  int     `json:"tokens"`  // that are predicted
	Expert  float64 `json:"expert"`  // of the model of the domain
	Mixture float64 `json:"mixture"` // of all experts together
	Dense   float64 `json:"dense"`   // of one model, trained on the data of all domains in the steps of one expert
}

// Report is the outcome.
type Report struct {
	Domains []Domain        `json:"domains"`
	Bars    []benchmark.Bar `json:"bars"`
}

// Limits of the bars: how much higher the perplexity of a mixture may be than that of the expert of a domain, and than
// that of one model for all, on the mean of the domains.
const (
	aboveExpert = 0.03
	aboveDense  = 1
)

// Measure trains the experts, and then one model on the data of all, each on an embedded network, and removes them.
func Measure(ctx context.Context, o Options) (r *Report, err error) {
	dir, err := os.MkdirTemp("", "starling-experts-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var runs []consumer.Options
	for _, j := range o.Jobs {
		runs = append(runs, consumer.Options{Job: j, Dir: filepath.Join(dir, "mixture", j.Expert)})
	}
	o.Progress("training the experts")
	if _, err := experts.Train(ctx, runs); err != nil {
		return nil, err
	}
	one, err := dense(o.Jobs)
	if err != nil {
		return nil, err
	}
	o.Progress("training one model on the data of all")
	if _, err := node.Train(ctx, consumer.Options{Job: one, Dir: filepath.Join(dir, "dense")}); err != nil {
		return nil, err
	}
	o.Progress("measuring")
	r = &Report{}
	for _, j := range o.Jobs {
		d, err := measure(ctx, j, dir, o.Threads)
		if err != nil {
			return nil, err
		}
		r.Domains = append(r.Domains, d)
	}
	r.Bars = bars(r.Domains)
	return r, nil
}

// dense is the job of the first expert with the data of all, of which each domain has as many bytes.
func dense(jobs []*job.Job) (*job.Job, error) {
	type set struct {
		Path   string  `json:"path"`
		Format string  `json:"format"`
		Field  string  `json:"field"`
		Weight float64 `json:"weight"`
	}
	sizes := make([]float64, len(jobs))
	least := math.Inf(1)
	for i, j := range jobs {
		files, err := j.Files()
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			info, err := os.Stat(f.Path)
			if err != nil {
				return nil, err
			}
			sizes[i] += j.Datasets[f.Dataset].Weight * float64(info.Size())
		}
		least = min(least, sizes[i])
	}
	var all []set
	for i, j := range jobs {
		for _, d := range j.Datasets {
			all = append(all, set{d.Path, d.Format, d.Field, d.Weight * least / sizes[i]})
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	first := jobs[0]
	return job.Parse(first.Source, first.Path, append(first.Overrides[:len(first.Overrides):len(first.Overrides)],
		"datasets="+string(text))...)
}

// measure reads the held-out text of a domain with its expert, the mixture and the one model.
func measure(ctx context.Context, j *job.Job, dir string, threads int) (d Domain, err error) {
	b, err := prepare.New(j)
	if err != nil {
		return d, err
	}
	defer b.Close()
	var ids []uint32
	for _, batch := range heldout.Batches(b) {
		for _, id := range batch {
			ids = append(ids, uint32(id))
		}
	}
	if len(ids) == 0 {
		return d, benchmark.Unusable(j.Path, fmt.Errorf("expert %s holds no text out: give val_set_size", j.Expert))
	}
	text := b.Tokenizer.Decode(ids)
	d.Name = j.Expert
	for _, m := range []struct {
		dir string
		out *float64
	}{{filepath.Join(dir, "mixture", j.Expert), &d.Expert}, {filepath.Join(dir, "mixture"), &d.Mixture},
		{filepath.Join(dir, "dense"), &d.Dense}} {
		model, err := pretrained.Open(m.dir)
		if err != nil {
			return d, err
		}
		e, err := model.Evaluate(ctx, text, int(b.Spec.Length), threads)
		if err != nil {
			return d, err
		}
		d.Tokens, *m.out = e.Tokens, e.Loss
	}
	return d, nil
}

func bars(domains []Domain) []benchmark.Bar {
	worst, mixture, dense := 0.0, 0.0, 0.0
	for _, d := range domains {
		worst = max(worst, math.Exp(d.Mixture-d.Expert)-1)
		mixture += d.Mixture / float64(len(domains))
		dense += d.Dense / float64(len(domains))
	}
	return []benchmark.Bar{
		benchmark.AtMost("perplexity of the mixture above that of the expert of a domain", worst, aboveExpert),
		benchmark.Below("perplexity of the mixture, of that of one model with the steps of an expert",
			math.Exp(mixture-dense), aboveDense),
	}
}
