package member

import (
	"context"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/node/accelerator"
)

// Accelerator is a device that the members of a process share: their units of one job are computed there one after the
// other.
type Accelerator struct {
	ctx     context.Context
	options accelerator.Options
	at      int

	mu      sync.Mutex
	devices map[canon.Digest]*accelerator.Device // by program
}

// OpenAccelerator admits a device of this machine until the context ends: an *accelerator.Error says why there is none.
func OpenAccelerator(ctx context.Context, say func(string)) (*Accelerator, error) {
	if say == nil {
		say = func(string) {}
	}
	a := &Accelerator{ctx: ctx, devices: map[canon.Digest]*accelerator.Device{}}
	var err error
	a.at, err = accelerator.Admit(ctx, a.options, say)
	return a, err
}

// of returns the device for the steps of a program.
func (a *Accelerator) of(step *program.Program, failed func(error)) *accelerator.Device {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := step.Digest()
	d := a.devices[key]
	if d == nil {
		d = accelerator.New(a.ctx, a.options, a.at, step, failed)
		a.devices[key] = d
	}
	return d
}

// Close ends the children of the devices.
func (a *Accelerator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.devices {
		if d.Take() {
			d.Close()
			d.Give()
		}
	}
}
