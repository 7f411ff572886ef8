package simulate

import (
	"math"
	"slices"
	"strconv"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/sim/forecast"
)

// Paces are the speeds of workers relative to the fastest, in hundredths; nil if all are the same.
func (n Options) Paces(workers int) []string {
	speeds := make([]float64, workers)
	for i := range speeds {
		speeds[i] = n.Gflops[i%len(n.Gflops)]
	}
	fastest := slices.Max(speeds)
	if slices.Min(speeds) == fastest {
		return nil
	}
	paces := make([]string, workers)
	for i, s := range speeds {
		paces[i] = strconv.FormatFloat(max(0.01, math.Round(100*s/fastest)/100), 'g', -1, 64)
	}
	return paces
}

// RunModel is the run of a planned job on a network, as Simulate plays it. A round waits for the slowest link.
func RunModel(b *prepare.CompiledJob, n Options, order market.Order, update int64) (c forecast.RunModel, err error) {
	workers, segments := int(b.Spec.Units), float64(b.Spec.Segments())
	c = forecast.RunModel{
		Round: forecast.Round{Workers: workers, Verifiers: int(order.Verifiers) + n.Verifiers, Update: update,
			Link:  n.Links[0],
			Block: n.BlockTime},
		Rounds: int(b.Spec.Rounds), AuditPPM: order.Terms.AuditPPM, Audited: 1, Window: int(order.Terms.Window),
		Challenge: int(order.Terms.Deadlines.Challenge), Carry: int(order.Terms.Carry), Overlap: order.Terms.Overlap,
		Sizes: order.Terms.Sizes,
	}
	for _, shape := range train.HandedShapes(b.Spec.Exchange, b.Step) {
		c.Handed += int64(shape.Bytes())
	}
	if c.Overlap {
		if c.Updates, err = outer.Sent(b.Spec, train.Params(b.Step), b.Size().Shapes()); err != nil {
			return c, err
		}
	}
	if order.Terms.PartialAudits {
		c.Audited = (segments + 1) / (2 * segments)
	}
	if b.Slices > 0 {
		if c.Round.Sliced, err = b.Size().Traffic(); err != nil {
			return c, err
		}
	}
	for i := range workers {
		m := machine(b, n, i)
		c.Units = append(c.Units, m.Unit)
		l := &c.Round.Link
		l.Up, l.Down, l.Latency, l.Loss = min(l.Up, m.Link.Up), min(l.Down, m.Link.Down), max(l.Latency, m.Link.Latency),
			max(l.Loss, m.Link.Loss)
	}
	c.Check = machine(b, n, 0).Unit
	return c, nil
}
