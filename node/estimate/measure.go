package estimate

import (
	"context"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/role/registrant"
)

// Measured is the rate of a machine in operations a second, and the time that its program took. A network counts the
// time from block to block, so that it finds less: Found.
type Measured struct {
	Rate uint64
	Took time.Duration
}

// Measure runs the program by which networks measure machines, for about a time, on a device or with some threads on
// the processor.
func Measure(ctx context.Context, d *shared.Device, threads int, about time.Duration) (Measured, error) {
	steps, err := d.Steps(ctx, threads, about)
	if err != nil {
		return Measured{}, err
	}
	began := time.Now()
	g := registrant.Gauge{Seed: canon.Sum("starling/estimate"), Steps: steps, Count: registry.Segments}
	if _, err := d.Segments(ctx, g, threads); err != nil {
		return Measured{}, err
	}
	took := max(time.Since(began), time.Millisecond)
	return Measured{Rate: registry.RateOf(steps, took.Milliseconds()), Took: took}, nil
}

// Found is the rate that a network finds whose blocks take a time: in the mean one block more than the program takes.
func (m Measured) Found(block time.Duration) uint64 {
	return uint64(float64(m.Rate) * m.Took.Seconds() / (m.Took + block).Seconds())
}
