// Package devices measures which devices of this machine compute the same bits as the processor: it runs the comparison
// suite on each. It admits no device to anything.
package devices

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
)

// Options say what is compared.
type Options struct {
	Elements int // numbers of each sort that elementwise operators get
	Times    int // that products of integers and of float32 are measured on the processor
	Threads  int // of the processor
	Device   accelerator.Options
	Progress func(string)
}

// Device is what came of one.
type Device struct {
	Name     string         `json:"name"`
	Driver   string         `json:"driver"`
	Memory   int64          `json:"memory_bytes"`
	Missing  string         `json:"missing,omitempty"` // what it lacks; then nothing is compared
	Exact    bool           `json:"exact"`
	Elements int            `json:"elements"`
	Differ   int            `json:"differ"`
	Failed   string         `json:"failed,omitempty"` // the first case that failed, or the error of the driver
	Seconds  float64        `json:"seconds"`
	Results  []suite.Result `json:"results,omitempty"`
}

// Report is all devices.
type Report struct {
	Devices []Device `json:"devices"`
	// The processor's products of integers, compared with those of float32.
	Integers *machine.IntegersReport `json:"integers"`
	None     string                  `json:"none,omitempty"` // why there are none
	Bars     []benchmark.Bar         `json:"bars"`
}

// sayEvery is the time between two lines about the progress of a comparison.
const sayEvery = 15 * time.Second

// Measure runs the suite on every device that lacks nothing, and compares products of the processor.
func Measure(ctx context.Context, o Options) (Report, error) {
	r := Report{Devices: []Device{}, Bars: []benchmark.Bar{}}
	o.Progress("measuring products of integers on the processor")
	var err error
	if r.Integers, err = machine.Integers(ctx, o.Threads, o.Times); err != nil {
		return r, err
	}
	r.Bars = append(r.Bars, r.Integers.Bars...)
	list, err := accelerator.List(ctx, o.Device)
	if e, ok := errors.AsType[*accelerator.Error](err); ok {
		r.None = e.Error()
		return r, ctx.Err()
	}
	if err != nil {
		return r, err
	}
	for i, c := range list {
		d := Device{Name: c.Name, Driver: c.Driver, Memory: c.Memory, Missing: c.Missing()}
		if d.Missing == "" {
			o.Progress(fmt.Sprintf("comparing %s with the portable kernels", c.Name))
			began := time.Now()
			said := began
			report, err := accelerator.Suite(ctx, o.Device, i, o.Elements, func(done, all int, r suite.Report) {
				if time.Since(said) > sayEvery && done < all {
					said = time.Now()
					o.Progress(fmt.Sprintf("%d of %d pieces of cases, %d of %d elements differ", done, all, r.Differ(),
						r.Elements()))
				}
			})
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			d.Seconds = benchmark.Rounded(time.Since(began).Seconds(), 1)
			d.Results, d.Elements, d.Differ, d.Failed = report.Results, report.Elements(), report.Differ(), report.Failed()
			if err != nil {
				d.Failed = err.Error()
			}
			d.Exact = d.Failed == ""
			if err == nil {
				r.Bars = append(r.Bars, benchmark.AtMost("elements that differ on "+c.Name, float64(d.Differ), 0))
			}
		}
		r.Devices = append(r.Devices, d)
	}
	if len(r.Devices) == 0 {
		r.None = "the drivers have no device"
	}
	return r, nil
}
