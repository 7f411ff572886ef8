package transfer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/sim/forecast"
	"github.com/starling-network/starling/sim/link"
)

// The scenario of training over slow links: gpt2-10m in rounds of 50 inner steps with 64 sequences of 256 tokens a
// step, as nanoGPT trains a model of this size; eight workers and a verifier; 100 Mbit/s, of which pacing leaves a
// part for control messages (network/peer); 100 to 200 ms one way; and a block a second.
const (
	roundPreset  = "gpt2-10m"
	roundWorkers = 8
	roundSteps   = 50
	roundBatch   = 64
	roundCodec   = codec.E3M0 // of the bars: four bits suit such a link, and int8 has rows of its own
	paced        = 0.92
)

var roundLink = link.Link{Latency: 100 * time.Millisecond, Up: paced * 12.5e6, Down: paced * 12.5e6}

// roundFails is the worker in eight that fails every third round, and is back after half a minute.
var roundFails = failure{every: 3, away: 30 * time.Second}

// RoundRow is the utilisation of rounds of one kind.
type RoundRow struct {
	Batch        int     `json:"batch"` // sequences of a step
	Codec        string  `json:"codec"`
	BlockSeconds float64 `json:"block_seconds"`
	InnerSeconds float64 `json:"inner_seconds"` // of a round
	UpdateMB     float64 `json:"update_mb"`
	Formula      float64 `json:"formula"`
	Virtual      float64 `json:"virtual,omitempty"` // played under virtual time
	Failing      float64 `json:"failing,omitempty"` // the same, of steps that count, while a worker fails
}

// TrafficRow is what a worker receives in a round, in MB.
type TrafficRow struct {
	Workers int     `json:"workers"`
	Slices  int     `json:"slices"` // that jobs have unless they say otherwise; 0: everybody combines all updates
	MB      float64 `json:"mb"`
	Whole   float64 `json:"whole_mb"`  // if everybody combines all updates
	Sliced  float64 `json:"sliced_mb"` // in half as many slices as workers
	// bytes measured under virtual time as a share of the computed bytes of the small model that is played, with slices
	Played float64 `json:"played,omitempty"`
}

// plainRounds is how many rounds are played in which nothing happens: they are all alike.
const plainRounds = 2

// training adds the figures of training over slow links.
func (r *Result) training(ctx context.Context, o Options) error {
	shapes, base, err := roundCost(ctx)
	if err != nil {
		return err
	}
	base.Inner = cmp.Or(o.Inner, base.Inner)
	if err := r.utilisation(ctx, base, shapes, o.Training); err != nil {
		return err
	}
	return r.traffic(ctx, shapes)
}

func (r *Result) utilisation(ctx context.Context, base forecast.Round, shapes []tensor.Shape, rounds uint32) error {
	for _, x := range []struct {
		batch        int
		codec        string
		block        time.Duration
		plays, fails bool
	}{
		{roundBatch, roundCodec, time.Second, true, true}, {roundBatch, codec.Int8, time.Second, true, true},
		{roundBatch, codec.Int8, 5 * time.Second, false, false},
		{32, codec.Int8, time.Second, false, false}, {16, codec.E3M0, time.Second, false, false},
		{8, codec.Int8, time.Second, false, false}, {8, codec.E3M0, time.Second, true, false},
	} {
		m := base
		m.Inner, m.Block = base.Inner*time.Duration(x.batch)/roundBatch, x.block
		var err error
		if m.Update, err = updateBytes(x.codec, shapes); err != nil {
			return err
		}
		row := RoundRow{
			Batch: x.batch, Codec: x.codec, BlockSeconds: x.block.Seconds(),
			InnerSeconds: benchmark.Rounded(m.Inner.Seconds(), 1),
			UpdateMB:     benchmark.Rounded(float64(m.Update)/1e6, 2), Formula: benchmark.Rounded(m.Utilisation(), 4),
		}
		if x.plays {
			if row.Virtual, err = Utilisation(ctx, m, plainRounds); err != nil {
				return err
			}
		}
		if x.fails {
			if row.Failing, err = utilisationOf(ctx, m, rounds, roundFails); err != nil {
				return err
			}
		}
		r.Rounds = append(r.Rounds, row)
	}
	first, apart := r.Rounds[0], 0.0
	for _, row := range r.Rounds {
		if row.Virtual > 0 {
			apart = max(apart, 100*math.Abs(row.Virtual-row.Formula))
		}
	}
	kind := fmt.Sprintf("%s, updates in %s, 100 Mbit/s, 100 ms, %d workers, %d steps of %d sequences", roundPreset,
		roundCodec, roundWorkers, roundSteps, roundBatch)
	r.Bars = append(r.Bars,
		benchmark.AtLeast("share of time in inner steps, "+kind, first.Virtual, 0.95),
		benchmark.Below("between that and the formula, in points, the most of all kinds played", apart, 3),
		benchmark.AtLeast("share of time in inner steps that count, one worker of eight failing every third round, "+kind,
			first.Failing, 0.9),
	)
	return nil
}

// Utilisation plays rounds under virtual time, without failures: the share of it in inner steps.
func Utilisation(ctx context.Context, r forecast.Round, rounds uint32) (float64, error) {
	return utilisationOf(ctx, r, rounds, failure{})
}

// utilisationOf plays rounds.
func utilisationOf(ctx context.Context, r forecast.Round, rounds uint32, fails failure) (float64, error) {
	p, _, err := play(ctx, r, rounds, 0, fails)
	return benchmark.Rounded(p.utilisation, 4), err
}

func (r *Result) traffic(ctx context.Context, shapes []tensor.Shape) error {
	most, err := slice.Most(codec.Int8, shapes)
	if err != nil {
		return err
	}
	for _, workers := range []int{4, 16, 64, 256} {
		half := min(workers/2, most)
		whole, err := slice.TrafficOf(codec.Int8, shapes, workers, 0)
		if err != nil {
			return err
		}
		cut, err := slice.TrafficOf(codec.Int8, shapes, workers, half)
		if err != nil {
			return err
		}
		mb := func(n int64) float64 { return benchmark.Rounded(float64(n)/1e6, 1) }
		row := TrafficRow{Workers: workers, Whole: mb(whole.Total()), Sliced: mb(cut.Total())}
		if row.MB = row.Whole; workers >= spec.SlicesFrom {
			row.MB, row.Slices = row.Sliced, half
		}
		if workers <= 16 {
			if row.Played, err = playedTraffic(ctx, workers, half); err != nil {
				return err
			}
		}
		r.Traffic = append(r.Traffic, row)
	}
	n := len(r.Traffic)
	r.Bars = append(r.Bars,
		benchmark.Below("bytes of a worker in a round, 256 workers, of those with 64", r.Traffic[n-1].MB/r.Traffic[n-2].MB,
			1.1),
		benchmark.Below("bytes of a worker in rounds that are played, 4 and 16 workers, of the bytes by the sizes, at most",
			max(r.Traffic[0].Played, r.Traffic[1].Played), 1.1),
	)
	return nil
}

// playedTraffic plays rounds in slices, and returns the bytes that a worker receives in a round as a share of the
// computed bytes.
func playedTraffic(ctx context.Context, workers, slices int) (float64, error) {
	r := forecast.Round{Workers: workers, Verifiers: 1, Inner: 20 * time.Second, Update: 1e6, Link: roundLink,
		Block: time.Second}
	p, small, err := play(ctx, r, plainRounds, uint32(slices), failure{})
	if err != nil {
		return 0, err
	}
	said, err := slice.TrafficOf(small.Task.Spec.Exchange.Codec, shapesOf(small.Genesis.Params), workers, slices)
	return benchmark.Rounded(p.received/float64(said.Total()), 3), err
}

func shapesOf(params []*tensor.Tensor) []tensor.Shape {
	shapes := make([]tensor.Shape, len(params))
	for i, p := range params {
		shapes[i] = p.Shape
	}
	return shapes
}

// updateBytes is the size of an update of parameters of these shapes.
func updateBytes(name string, shapes []tensor.Shape) (int64, error) {
	t, err := slice.TrafficOf(name, shapes, 2, 0)
	return t.Updates, err
}

// roundCost measures the processor time of a round on this machine: the steps spread evenly over all cores, the rest
// as if on one core.
func roundCost(ctx context.Context) ([]tensor.Shape, forecast.Round, error) {
	r := forecast.Round{Workers: roundWorkers, Verifiers: 1, Link: roundLink, Block: time.Second}
	preset, err := machine.PresetNamed(roundPreset)
	if err != nil {
		return nil, r, err
	}
	cores := kernel.Cores
	t, err := machine.Train(ctx, preset, cores, 2)
	if err != nil {
		return nil, r, err
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	r.Inner = seconds(t.CPUSeconds / float64(cores) * roundSteps * float64(roundBatch) / float64(preset.Batch))
	config, err := architecture.Parse(preset.Architecture, preset.Config)
	if err != nil {
		return nil, r, err
	}
	task, genesis, err := machine.UnitTask(preset, cores, 1)
	if err != nil {
		return nil, r, err
	}
	spec := *task.Spec
	spec.Units, spec.Exchange.Outer, spec.Exchange.Momentum = roundWorkers, outer.Nesterov, 0.9
	task.Spec, genesis.Outer = &spec, train.Zeros(genesis.Params, 1)
	delta, names := config.Init(1), train.Params(task.Step)
	var update []*tensor.Tensor
	for _, n := range names {
		update = append(update, delta[n])
	}
	const segments = 4
	pack, combine, err := exchangeCost(ctx, task, genesis, update)
	r.Finish, r.Combine = seconds((segments+1)*t.RootSeconds)+pack, combine
	return shapesOf(genesis.Params), r, err
}

// exchangeCost measures the processor time of encoding one update, and of making and storing the next checkpoint from
// the updates of a round.
func exchangeCost(ctx context.Context, task *train.Task, genesis *train.Checkpoint,
	delta []*tensor.Tensor) (pack, combine time.Duration, err error) {
	dir, err := os.MkdirTemp("", "starling-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	store, err := blob.OpenDisk(dir)
	if err != nil {
		return 0, 0, err
	}
	e, err := engine.New(terms.Terms{Job: roundPreset, Screen: terms.ScreenUpdates}, task, store, nil)
	if err != nil {
		return 0, 0, err
	}
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e.Hold(base, genesis)
	var units work.Units
	var updates [][]byte
	begin, _ := benchmark.Usage()
	for i := range task.Spec.Units {
		u, err := update.Pack(task.Spec.Exchange.Codec, 0, i, delta)
		if err != nil {
			return 0, 0, err
		}
		updates = append(updates, u.Encode())
		units = append(units, &work.Unit{Index: i, Commit: work.Commitment{Update: u.Root()}})
	}
	packed, _ := benchmark.Usage()
	_, err = e.Advance(ctx, base, units, func(i int) ([]byte, error) { return updates[i], nil })
	combined, _ := benchmark.Usage()
	return (packed - begin) / time.Duration(len(units)), combined - packed, err
}
