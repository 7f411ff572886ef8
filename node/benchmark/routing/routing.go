// Package routing computes how much of the ideal throughput stages of replicas reach on workers of unequal speed, dealt
// in turn and by speed, as a run deals them: the exact lengths of their schedules. Nothing is trained. It is a part of
// starling bench pipeline.
package routing

import (
	"math/rand/v2"
	"slices"

	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/protocol/run/schedule"
)

// Setting is a round of replicas of three stages on nine workers of unequal speed. Shares are parts of the ideal: of
// the work of workers that never wait.
type Setting struct {
	Speeds   []float64 `json:"speeds"` // of the workers, three of each
	Replicas int       `json:"replicas"`
	Latency  float64   `json:"latency_ms"` // from one worker to another
	Late     int       `json:"late"`       // steps by which the first stage is late

	// times by which the rate of one of the slowest workers is above its speed; 0: it is not
	Overrated float64 `json:"overrated,omitempty"`
	Unrated   bool    `json:"unrated,omitempty"` // no rate is known

	Turn    float64 `json:"turn"`    // share, if units are dealt in turn: the mean over several orders of the workers
	Speed   float64 `json:"speed"`   // the same, dealt by speed
	Least   float64 `json:"least"`   // of those, in the order with the least
	Balance float64 `json:"balance"` // share of the deal by speed, if no stage waited for another
	Learnt  float64 `json:"learnt"`  // share after some rounds, each of which corrects the rates; the last order alone
}

// The stages and workers of the compared deals, the steps of a round, the orders of the workers that are tried, and the
// time in milliseconds that a worker of speed 1 takes for a microbatch of a stage, forward and backward. Rates are
// learnt for some rounds, of blocks of a tenth of a second.
const (
	Stages    = 3
	Steps     = 8
	tried     = 8
	learning  = 12
	block     = 100.0
	latency   = 100.0 // milliseconds from one worker to another
	usualPace = 150.0

	Least = 0.8 // share with a bar
)

// Barred is the place in Settings of the one that has a bar.
const Barred = 0

// Settings are compared.
var Settings = []Setting{
	{Speeds: []float64{3, 2, 1}, Replicas: 12, Latency: latency, Late: 1},
	{Speeds: []float64{3, 2, 1}, Replicas: 6, Latency: latency, Late: 1},
	{Speeds: []float64{3, 2, 1}, Replicas: 3, Latency: latency, Late: 1},
	{Speeds: []float64{3, 2, 1}, Replicas: 12, Latency: latency, Late: 1, Overrated: 4},
	{Speeds: []float64{3, 2, 1}, Replicas: 12, Latency: latency, Late: 1, Unrated: true},
	{Speeds: []float64{8, 2, 1}, Replicas: 12, Latency: latency, Late: 1},
	{Speeds: []float64{3, 2, 1}, Replicas: 12, Latency: 0},
	{Speeds: []float64{3, 2, 1}, Replicas: 12, Latency: latency},
	{Speeds: []float64{3, 2, 1}, Replicas: 3, Latency: latency},
	{Speeds: []float64{1, 1, 1}, Replicas: 12, Latency: latency},
}

// Shares computes the figures of settings. plan has a step of three stages, of which the first is late by some steps.
func Shares(settings []Setting, plan func(late int) (*stages.Plan, error)) ([]Setting, error) {
	list := slices.Clone(settings)
	for i := range list {
		p, err := plan(list[i].Late)
		if err != nil {
			return nil, err
		}
		if err := list[i].route(p, costsOf(p)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// costs are those of the units of a round.
type costs struct {
	flops []uint64                // of a step, by stage
	cost  map[order.Place]float64 // of a task of a step of a stage
	total float64                 // of a step of a replica
	pace  float64                 // milliseconds of an operation at speed 1
}

func costsOf(plan *stages.Plan) costs {
	w := costs{cost: map[order.Place]float64{}}
	for s, st := range plan.Stages {
		w.flops = append(w.flops, st.Whole.Flops())
		for _, p := range st.Pieces {
			n := float64(p.Program.Flops())
			w.cost[order.Place{Stage: s, Task: p.Task}] = n
			w.total += n
		}
	}
	w.pace = usualPace * float64(Stages*plan.Micro) / w.total
	return w
}

// crew draws the speeds of the workers in an order, and what their rates say.
func (r *Setting) crew(random *rand.Rand) (speeds []float64, rates []uint64) {
	for _, v := range r.Speeds {
		speeds = append(speeds, v, v, v)
	}
	random.Shuffle(len(speeds), func(a, b int) { speeds[a], speeds[b] = speeds[b], speeds[a] })
	rates = make([]uint64, len(speeds))
	for w, v := range speeds {
		if rates[w] = uint64(v * 1e9); r.Unrated {
			rates[w] = 1e9
		}
	}
	if r.Overrated > 0 {
		rates[slices.Index(speeds, slices.Min(speeds))] *= uint64(r.Overrated)
	}
	return speeds, rates
}

// route computes the figures of the setting.
func (r *Setting) route(plan *stages.Plan, of costs) error {
	random := rand.New(rand.NewPCG(1, 1))
	r.Least = 1
	for i := range tried {
		speeds, rates := r.crew(random)
		all := 0.0
		for _, v := range speeds {
			all += v
		}
		turn := make([]int, r.Replicas*Stages)
		for u := range turn {
			turn[u] = u % len(speeds)
		}
		owners := schedule.Stages(of.flops, r.Replicas, schedule.ByRate(make([]uint32, len(rates)), rates))
		ideal := of.pace * of.total * Steps * float64(r.Replicas) / all
		inTurn, err := ends(plan, of, turn, speeds, r.Latency)
		if err != nil {
			return err
		}
		bySpeed, err := ends(plan, of, owners, speeds, r.Latency)
		if err != nil {
			return err
		}
		load := make([]float64, len(speeds))
		for u, w := range owners {
			load[w] += float64(of.flops[u%Stages]) / speeds[w]
		}
		share := ideal / slices.Max(bySpeed)
		r.Turn += ideal / slices.Max(inTurn) / tried
		r.Speed += share / tried
		r.Least = min(r.Least, share)
		r.Balance += ideal / (of.pace * Steps * slices.Max(load)) / tried
		if i < tried-1 {
			continue
		}
		for range learning {
			correct(rates, owners, bySpeed)
			owners = schedule.Stages(of.flops, r.Replicas, schedule.ByRate(make([]uint32, len(rates)), rates))
			if bySpeed, err = ends(plan, of, owners, speeds, r.Latency); err != nil {
				return err
			}
		}
		r.Learnt = ideal / slices.Max(bySpeed)
	}
	for _, x := range []*float64{&r.Turn, &r.Speed, &r.Least, &r.Balance, &r.Learnt} {
		*x = benchmark.Rounded(*x, 3)
	}
	return nil
}

// correct corrects rates by the ends of a round, as a run does.
func correct(rates []uint64, owners []int, ends []float64) {
	sum, units, all, n := make([]uint64, len(rates)), make([]uint64, len(rates)), uint64(0), uint64(len(owners))
	for u, w := range owners {
		took := 1 + uint64(ends[u]/block)
		sum[w], units[w], all = sum[w]+took, units[w]+1, all+took
	}
	for w := range rates {
		if units[w] > 0 {
			rates[w] = schedule.Corrected(rates[w], sum[w]<<8/units[w], all<<8/n)
		}
	}
}

// ends are when the units of a round end in milliseconds, each with its replica, if they are on workers of these
// speeds: the exact length of their schedule.
func ends(plan *stages.Plan, of costs, on []int, speeds []float64, latency float64) ([]float64, error) {
	last, err := plan.Shared(Steps, on, func(at order.Place) float64 {
		return of.pace * of.cost[order.Place{Stage: at.Stage % Stages, Task: at.Task}] / speeds[on[at.Stage]]
	}, func(from, to order.Place) float64 {
		if on[from.Stage] == on[to.Stage] {
			return 0
		}
		return latency
	})
	if err != nil {
		return nil, err
	}
	for k := 0; k < len(last); k += Stages {
		end := slices.Max(last[k : k+Stages])
		for s := range Stages {
			last[k+s] = end
		}
	}
	return last, nil
}
