// Package strategies compares strategies of training by loss and bytes with data-parallel training on as many tokens,
// also under attack, and checks what they promise. A job is trained by none of this.
package strategies

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/strategies/published"
)

// Options say how thoroughly strategies are compared.
type Options struct {
	Layers, Width, Batch, Length int
	Steps                        int           // inner steps of the comparison of losses
	Seeds                        int           // of all training, from 1 on
	AttackRounds                 int           // rounds of 20 steps under attack
	ScaleModel                   int           // rounds of 10,000 modelled workers; 0: none, as with For
	Data                         string        // file of text; "": sentences that are made
	Keep                         string        // file of training runs that are over, which are not done again; "": none
	For                          time.Duration // no training run begins later than this; 0: all are done
	Threads                      int
	Losses                       bool // the bars of losses are claimed

	// is called after every training run, with the number of runs that are over and of all runs; may be nil
	Progress func(r Run, over, all int)
}

// Quick and ThoroughStrategies are the options of the command, but for the text and the threads.
var (
	Quick = Options{Layers: 1, Width: 16, Batch: 4, Length: 16, Steps: 40, Seeds: 1, AttackRounds: 6,
		ScaleModel: 24}
	Thorough = Options{Layers: 4, Width: 64, Batch: 8, Length: 64, Steps: 4000, Seeds: 3, AttackRounds: 40,
		ScaleModel: crowdRounds, Losses: true}
)

// Result is what Strategies measures.
type Result struct {
	Bars       []benchmark.Bar `json:"bars"`
	Losses     []LossRow       `json:"losses"`
	Attacks    []AttackRow     `json:"sieges"`
	ScaleModel *ScaleRow       `json:"crowd"` // null: it was not played
	Note       string          `json:"note"`
	Seconds    float64         `json:"seconds"`
}

// LossRow is a strategy against data-parallel training on as many tokens.
type LossRow struct {
	Name string `json:"name"`
	Sample
	Bytes int64   `json:"bytes"` // of the updates of a worker, in the whole run
	Less  float64 `json:"less"`  // times fewer than gradients in float32

	Received    int64   `json:"received"`    // bytes of the updates of the others
	Utilisation float64 `json:"utilisation"` // share of the time in steps of a large model, at 100 Mbit/s and 100 ms
}

// AttackRow is an attack of two of eight workers: by rule, the losses relative to that of the mean without attack;
// null: the model diverged.
type AttackRow struct {
	Attack string             `json:"attack"`
	Rules  map[string]*Sample `json:"rules"`
}

// Compare compares the parts of the exchange with their promises, and with each other on one small model, with the
// code of jobs: exchange/codec, exchange/aggregate, exchange/outer and the training of units.
func Compare(ctx context.Context, o Options) (*Result, error) {
	for name, n := range map[string]int{"threads": o.Threads, "steps": o.Steps, "seeds": o.Seeds,
		"rounds under attack": o.AttackRounds} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	r := &Result{}
	if err := r.formulas(ctx); err != nil {
		return nil, err
	}
	if o.ScaleModel > 0 && o.For == 0 {
		if err := r.addScaleRow(ctx, o.ScaleModel); err != nil {
			return nil, err
		}
	}
	text := []byte(sentences(20_000))
	if o.Data != "" {
		var err error
		if text, err = os.ReadFile(o.Data); err != nil {
			return nil, benchmark.Unusable(o.Data, err)
		}
	}
	s, err := newLossBench(text, o.Layers, o.Width, o.Batch, o.Length, o.Threads)
	if err != nil {
		return nil, err
	}
	if s.cache, err = openResultsCache(o.Keep, o.For); err != nil {
		return nil, err
	}
	c, w := newStrategyComparison(s, o), byzantineBench{bench: s, rounds: o.AttackRounds}
	var runs []trainingRun
	for seed := range uint64(o.Seeds) {
		runs = slices.Concat(runs, c.runs(seed+1), w.runs(seed+1))
	}
	if runs, err = s.left(runs); err != nil {
		return nil, err
	}
	if err := s.runAll(ctx, runs, o.Progress); err != nil {
		return nil, err
	}
	if err := r.addStrategyRows(c, o); err != nil {
		return nil, err
	}
	if err := r.addAttackRows(w, o.Seeds); err != nil {
		return nil, err
	}
	r.Seconds = benchmark.Rounded(time.Since(begin).Seconds(), 1)
	return r, nil
}

// sentences are text to learn from where no other is given.
func sentences(n int) string {
	words := strings.Fields("the a bird fish tree river stone child sings swims grows flows waits runs over under near " +
		"with and then slowly gladly")
	random := philox.New(7, 0)
	var b strings.Builder
	for range n {
		b.WriteString(words[random.Uint64n(uint64(len(words)))])
		b.WriteByte(" .\n"[min(2, random.Uint64n(12)/5)])
	}
	return b.String()
}

// formulas adds the bars that need no training.
func (r *Result) formulas(ctx context.Context) error {
	wrong := 0
	for _, name := range []string{
		codec.Int8, codec.Float32, codec.Float16, codec.BFloat16, codec.E3M0, codec.Sign, codec.Sparse, codec.Cosine,
		codec.TopKName(256, 8), codec.TopKName(1, 32),
	} {
		c, _ := codec.ByName(name)
		for _, dims := range [][]int{{1}, {63}, {64, 64}, {257, 65}, {70_001}} {
			x := tensor.New(tensor.Make(tensor.Float32, dims...))
			philox.NormalTo(x.F32(), 1, 0)
			b, err := codec.Encode(name, x)
			if err != nil {
				return err
			}
			if len(b) != codec.Size(c, x.Shape) {
				wrong++
			}
		}
	}
	taken, err := unequalSpeeds(ctx)
	if err != nil {
		return err
	}
	entries, same, away := published.BandwidthSteps()
	r.Bars = append(r.Bars,
		benchmark.Below("payloads whose size is not that of the formula, of ten codecs and five shapes", float64(wrong), 1),
		benchmark.Below(fmt.Sprintf("published bandwidths (Douillard et al. 2025): grid steps away, the worst of %d "+
			"(%d are the same)",
			entries, same), away, 1.5),
		benchmark.Below("published shares of INTELLECT-1: points away, the worst of three", published.IntellectPoints(), 0.5),
		benchmark.AtLeast("steps that workers of 0.58, 0.75, 1.51 and 3.33 s a step take in async_diloco, of the "+
			"steps that they could take "+
			"without waiting, under virtual time", taken, 0.9),
	)
	return nil
}
