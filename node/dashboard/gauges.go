package dashboard

import (
	"math"
	"sync"

	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/metrics"
	"github.com/starling-network/starling/node/tracking"
)

// ProgressGauges is the latest progress of the job of a process, for metrics and for the dashboard.
type ProgressGauges struct {
	mu     sync.Mutex
	latest consumer.Progress
}

// NewProgressGauges shows the progress of a job in a set of metrics.
func NewProgressGauges(set *metrics.Set) *ProgressGauges {
	f := &ProgressGauges{latest: consumer.Progress{Loss: math.NaN(), EvalLoss: math.NaN(), GradNorm: math.NaN(),
		TokensPerSecond: math.NaN()}}
	gauge := func(name, help string, value func(consumer.Progress) float64) {
		set.Gauge(name, help, func() float64 { return value(f.Latest()) })
	}
	for _, g := range tracking.Gauges {
		gauge(g.Name, g.Help, func(p consumer.Progress) float64 {
			m := p.Latest
			m.Step, m.Round, m.Workers = uint32(p.Step), uint32(p.Round), p.Workers
			m.PaidUzen, m.Coin = p.PaidUzen, coins.Shown(p.Coin)
			return g.Of(m)
		})
	}
	gauge("starling_job_planned_steps", "Inner steps of the whole job.",
		func(p consumer.Progress) float64 { return float64(p.Steps) })
	gauge("starling_job_budget_uzen", "Budget of the job, of an order in ZEN.",
		func(p consumer.Progress) float64 { return tracking.Uzen(p.Coin, p.BudgetUzen) })
	gauge("starling_job_budget_coins", "Budget of the job, in coins of its order.",
		func(p consumer.Progress) float64 { return p.Coin.Float(p.BudgetUzen) })
	return f
}

func (f *ProgressGauges) Latest() consumer.Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// Follow keeps what it is given, and passes it on.
func (f *ProgressGauges) Follow(next func(consumer.Progress)) func(consumer.Progress) {
	return func(p consumer.Progress) {
		f.mu.Lock()
		f.latest = p
		f.mu.Unlock()
		if next != nil {
			next(p)
		}
	}
}
