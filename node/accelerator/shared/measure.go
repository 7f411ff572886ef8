package shared

import (
	"context"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/gauge"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/protocol/registry"
)

// measure is a measurement of the rate of the device: a program of package gauge that is compiled before it begins.
type measure struct {
	runner *accelerator.Runner
	state  *tensor.Tensor
}

// atOnce is how many steps of a measurement are asked for at once.
const atOnce = 1 << 10

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

// Pace prepares a measurement, and returns how long a step of all its segments takes on the device. ok is false where
// the processor computes.
func (d *Device) Pace(ctx context.Context) (step time.Duration, ok bool, err error) {
	if d.admitted == nil {
		return 0, false, nil
	}
	d.rating.Lock()
	defer d.rating.Unlock()
	step, err = d.prepare(ctx)
	return step, true, err
}

// prepare compiles the program of a measurement, and tries it.
func (d *Device) prepare(ctx context.Context) (step time.Duration, err error) {
	d.endMeasure()
	p, err := gauge.Program(registry.Segments)
	if err != nil {
		return 0, err
	}
	r, err := accelerator.NewRunner(ctx, d.options.Child, d.admitted.At, p, []string{gauge.State})
	if err != nil {
		return 0, err
	}
	m := &measure{r, tensor.New(tensor.Make(tensor.Float32, registry.Segments, gauge.Side, gauge.Side))}
	const sample = 16
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

// Measure returns the results of all segments of a measurement. ok is false where the processor computes.
func (d *Device) Measure(ctx context.Context, seed canon.Digest, steps uint32) (results []canon.Digest, ok bool,
	err error) {
	if d.admitted == nil {
		return nil, false, nil
	}
	d.rating.Lock()
	defer d.rating.Unlock()
	if d.measure == nil { // the process was started again
		if _, err := d.prepare(ctx); err != nil {
			return nil, true, err
		}
	}
	defer d.endMeasure()
	if err := d.measure.run(seed, steps); err != nil {
		return nil, true, err
	}
	return gauge.Results(d.measure.state), true, nil
}

// endMeasure ends a measurement.
func (d *Device) endMeasure() {
	if d.measure != nil {
		d.measure.runner.Close()
		d.measure = nil
	}
}
