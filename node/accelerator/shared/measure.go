package shared

import (
	"context"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/gauge"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/role/registrant"
)

// measure is a measurement of the rate of the device: a program of package gauge that is compiled before it begins.
type measure struct {
	runner *accelerator.Runner
	state  *tensor.Tensor
}

const (
	atOnce = 1 << 10 // steps of a measurement that the device is asked for at once
	sample = 16      // steps that are timed to learn how many a measurement takes
)

// run takes steps of all segments of a seed.
func (m *measure) run(seed canon.Digest, steps uint32) error {
	if err := m.runner.Put(gauge.Inputs(seed, 0, registry.Segments)); err != nil {
		return err
	}
	for left := int(steps); left > 0; left -= atOnce {
		err := m.runner.Run(min(left, atOnce), nil, map[string]*tensor.Tensor{gauge.State: m.state})
		if err != nil {
			return err
		}
	}
	return nil
}

// Steps is how many steps a segment of a measurement is to have so that all of them take a time. The device computes
// them, for which the measurement is prepared, or the processor with some threads.
func (d *Device) Steps(ctx context.Context, threads int, all time.Duration) (uint32, error) {
	gauge.Segment(canon.Digest{}, 0, 1, threads) // what is done once
	began := time.Now()
	gauge.Segment(canon.Digest{}, 0, sample, threads)
	step := max(time.Since(began)/sample, time.Microsecond)
	n := all / (registry.Segments * step)
	if d.using() != nil { // a checker computes its samples on a processor, perhaps on one like this
		d.rating.Lock()
		defer d.rating.Unlock()
		onDevice, err := d.prepare(ctx)
		if err != nil {
			return 0, err
		}
		n = min(all/onDevice, checkTimes*all/(registry.Samples*step))
	}
	return uint32(min(max(1, n), registry.MaxSteps)), nil
}

// checkTimes is how many times as long as the measurement the samples of a checker may take. A measurement takes an
// eighth of the time that a checker has, or less.
const checkTimes = 4

// Segments returns the results of segments: of all of a measurement, which the device computes, or of those of another
// participant, which the processor does.
func (d *Device) Segments(ctx context.Context, g registrant.Gauge, threads int) (results []canon.Digest, err error) {
	if g.Count == registry.Segments && d.using() != nil {
		return d.all(ctx, g)
	}
	for i := range g.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		results = append(results, gauge.Segment(g.Seed, g.First+i, g.Steps, threads))
	}
	return results, nil
}

// prepare compiles the program of a measurement, and tries it. Its operators have the same bits in all versions of the
// numerics, and every device computes version 2.
func (d *Device) prepare(ctx context.Context) (step time.Duration, err error) {
	d.endMeasure()
	p, err := gauge.Program(registry.Segments)
	if err != nil {
		return 0, err
	}
	r, err := accelerator.NewRunner(ctx, d.options.Child, d.admitted.At, p.In(kernel.Version2), []string{gauge.State})
	if err != nil {
		return 0, err
	}
	m := &measure{r, tensor.New(tensor.Make(tensor.Float32, registry.Segments, gauge.Side, gauge.Side))}
	err = m.run(canon.Digest{}, 1) // what is done once
	began := time.Now()
	if err == nil {
		err = m.run(canon.Digest{}, sample)
	}
	if err != nil {
		r.Close()
		return 0, err
	}
	d.measure = m
	return max(time.Since(began)/sample, time.Microsecond), nil
}

// all computes the segments of a measurement.
func (d *Device) all(ctx context.Context, g registrant.Gauge) ([]canon.Digest, error) {
	d.rating.Lock()
	defer d.rating.Unlock()
	if d.measure == nil { // the process was started again
		if _, err := d.prepare(ctx); err != nil {
			return nil, err
		}
	}
	defer d.endMeasure()
	if err := d.measure.run(g.Seed, g.Steps); err != nil {
		return nil, err
	}
	return gauge.Results(d.measure.state), nil
}

// endMeasure ends a measurement.
func (d *Device) endMeasure() {
	if d.measure != nil {
		d.measure.runner.Close()
		d.measure = nil
	}
}
