package reinforce

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/reinforce/sums"
	"github.com/starling-network/starling/node/benchmark/transfer"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// The job whose answers other units draw has the shape of examples/grpo-async.yaml: in a round two units learn in four
// steps, from the answers that eight units draw.
const (
	learners, apartSteps = 2, 4
	apartStream          = 5
	apartRate            = 6e-4
)

// The machines on which it is played: two that learn fast, and eight generators that learn slowly and draw as fast. A
// block takes a second.
const (
	generators = learners * apartSteps
	fast, slow = 10 * time.Second, 35 * time.Second // of a unit that learns
	draws      = 10 * time.Second                   // of one that draws
	verifiers  = 2
	played     = 75 // rounds of the run
)

// slowLink is how these machines are connected.
var slowLink = link.Link{Latency: 100 * time.Millisecond, Up: 2.5e6, Down: 2.5e6}

// jobs are those that are compared, the last one with the better of the others. With a staleness of 0 all machines
// draw, and then the units learn.
var jobs = []Age{{Correction: rollout.Clipped}, {Correction: rollout.Tapered},
	{Staleness: 2, Correction: rollout.Tapered}}

// Age is a job whose answers have a policy of bounded age.
type Age struct {
	Staleness  uint32             `json:"staleness"`
	Correction rollout.Correction `json:"correction"`
	Seconds    float64            `json:"round_seconds"` // of a round, under virtual time, all rounds of the run
	Throughput float64            `json:"throughput"`    // of the jobs with the answers of the round itself
	Reward     float64            `json:"reward"`        // after the last round, the mean of the models

	// Of a job of as many rounds as this one does in the time of that with the answers of the round itself.
	TimeRounds int     `json:"rounds_in_its_time"`
	TimeReward float64 `json:"reward_in_its_time"`
}

// stale measures jobs of a number of rounds, and of a time. It begins with models that were shown right answers, one
// for each seed.
func (r *Report) stale(ctx context.Context, o Options, c architecture.Config, shown []map[string]*tensor.Tensor) error {
	mean := func(job Age, rounds int) (sum float64, err error) {
		for seed, weights := range shown {
			l := &learner{config: c, options: o, eval: r.eval}
			reward, err := r.parts.number(fmt.Sprintf("seed %d, staleness %d, %s, %d rounds", seed, job.Staleness,
				job.Correction, rounds), func() (float64, error) { return l.apart(ctx, job, rounds, uint64(seed), weights) })
			if err != nil {
				return 0, err
			}
			r.eval = cmp.Or(l.eval, r.eval)
			sum += reward / float64(len(shown))
			o.Progress(fmt.Sprintf("seed %d: %.3f after %d rounds that learn from answers of %d rounds before, %s", seed,
				reward, rounds, job.Staleness, job.Correction))
		}
		return benchmark.Rounded(sum, 4), nil
	}
	for i, row := range jobs {
		if i > 0 && jobs[i-1].Staleness == row.Staleness {
			row.Seconds = r.Ages[i-1].Seconds
		} else {
			n, err := cmp.Or(o.Played, played), error(nil)
			row.Seconds, err = r.parts.number(fmt.Sprintf("seconds of a round, staleness %d, of %d", row.Staleness, n),
				func() (float64, error) {
					took, err := roundTime(ctx, row.Staleness, r.Parameters, n)
					return benchmark.Rounded(took.Seconds(), 2), err
				})
			if err != nil {
				return err
			}
		}
		row.Throughput = benchmark.Rounded(r.first(row).Seconds/row.Seconds, 3)
		o.Progress(fmt.Sprintf("staleness %d: %.1f s a round, %.2f times the throughput of 0", row.Staleness, row.Seconds,
			row.Throughput))
		var err error
		if row.Reward, err = mean(row, o.Rounds); err != nil {
			return err
		}
		row.TimeRounds, row.TimeReward = int(float64(o.Rounds)*row.Throughput), row.Reward
		if row.TimeRounds != o.Rounds {
			if row.TimeReward, err = mean(row, row.TimeRounds); err != nil {
				return err
			}
		}
		r.Ages = append(r.Ages, row)
	}
	last, best := r.Ages[len(r.Ages)-1], 0.
	for _, row := range r.Ages[:len(r.Ages)-1] {
		best = max(best, row.Reward)
	}
	r.Bars = append(r.Bars,
		benchmark.AtLeast("throughput with answers of two rounds before, of that with those of the round", last.Throughput,
			1.5),
		benchmark.AtMost("reward that this costs in as many rounds", best-last.Reward, 0.02),
		benchmark.AtMost("reward that this costs in as much time", best-last.TimeReward, 0.02))
	return nil
}

// first is the first of the jobs that are compared.
func (r *Report) first(or Age) Age {
	if len(r.Ages) == 0 {
		return or
	}
	return r.Ages[0]
}

// apart is the reward of a model after a job of some rounds that draws its answers apart, executed without a network.
func (l *learner) apart(ctx context.Context, job Age, rounds int, seed uint64,
	weights map[string]*tensor.Tensor) (float64, error) {
	drawn := model.Rollout{Group: group, Tokens: sums.Digits, Temperature: 1, Apart: apartSteps,
		Reward: rollout.Reward{Exact: 1, Prefix: 1}, Correction: job.Correction}
	task, err := model.Reinforce(l.config, model.Batch{Sequences: prompts, Length: sums.Length, Silent: sums.Silent},
		drawn)
	if err != nil {
		return 0, err
	}
	step, err := task.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.01, MaxGradNorm: 1})
	if err != nil {
		return 0, err
	}
	step = step.In(market.DefaultParams().NumericsAt(1))
	x := train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1}
	genesis, err := outer.Genesis(x, train.Params(step), weights)
	if err != nil {
		return 0, err
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "rl", Seed: seed, Program: step.Digest(), Genesis: genesis.Root(),
		Rounds: uint32(rounds), Steps: apartSteps, Segment: apartSteps, Units: learners, Batch: prompts,
		Length: sums.Length, Rate: train.Rate{Kind: train.Cosine, Peak: apartRate, Warmup: 10}, Beta1: 0.9, Beta2: 0.95,
		Exchange: x, Rollout: &train.Rollout{Staleness: job.Staleness},
	}
	exec, err := spec.Compile(step, l.options.Threads)
	if err != nil {
		return 0, err
	}
	t := &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: prompter{}}
	if err := t.Divide(); err != nil {
		return 0, err
	}
	lineage, last := workload.Of("rl", t, genesis), genesis
	for round := range spec.Rounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if last, err = lineage.After(round + 1); err != nil {
			return 0, err
		}
	}
	l.weights = map[string]*tensor.Tensor{}
	for i, name := range last.Names {
		l.weights[name] = last.Params[i]
	}
	return l.right()
}

// prompter draws the sums of each step of each unit.
type prompter struct{ data.Reader }

// Batch implements data.Reader.
func (prompter) Batch(dst []int32, a data.Address, _ int) error {
	place := (uint64(a.Round)*uint64(a.Units)+uint64(a.Unit))*uint64(a.StepsPerRound) + uint64(a.Step)
	(&sums.Stream{Seed: a.Seed, Number: apartStream, Next: place << 32}).Fill(dst)
	return nil
}

// roundTime plays a job of some rounds on the machines under virtual time, with the rules, the roles and the chain as
// they are, and returns the mean time of its rounds. A small model takes the place of one of a number of parameters,
// with as many bytes on the links.
func roundTime(ctx context.Context, age uint32, parameters, rounds int) (time.Duration, error) {
	j, err := workload.New(workload.Size{Rounds: uint32(rounds), Units: learners, Steps: apartSteps, Segment: 1,
		Rollout: &train.Rollout{Staleness: age}})
	if err != nil {
		return 0, err
	}
	small := 0
	for _, p := range j.Genesis.Params {
		small += p.Shape.Elements()
	}
	times := float64(parameters) / float64(small)
	c := sim.Config{Seed: 1, Job: j, Workers: learners + generators, Verifiers: verifiers, Validators: 1, Link: slowLink,
		ByteScale: sim.ByteScale{Job: 1, Weights: times, Updates: times}, Machines: map[string]sim.Machine{},
		MaxBlocks: 1 << 20}.Usual()
	for _, name := range c.Names() {
		c.Machines[name] = sim.Machine{Link: slowLink, Unit: fast, Draw: draws}
	}
	for i := range generators {
		c.Machines["worker-"+strconv.Itoa(learners+i)] = sim.Machine{Link: slowLink, Unit: slow, Draw: draws}
	}
	o := &transfer.Pacer{Ctx: ctx}
	w, err := sim.New(c, o)
	if err != nil {
		return 0, err
	}
	o.Network = w
	begun := w.Now()
	if _, err := w.Play(); err != nil {
		return 0, err
	}
	if len(o.Ends) != rounds {
		return 0, fmt.Errorf("benchmark: %d of %d rounds were attested", len(o.Ends), rounds)
	}
	return (o.Ends[rounds-1].At - begun) / time.Duration(rounds), nil
}
