package shared

import (
	"errors"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/crosscheck"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
)

// units are those of a party in one job.
type units struct {
	*crosscheck.Device
	on     *accelerator.Device
	all    *Device
	report func(error)
	whole  bool // the unit is computed as far as its state was read
}

// Take implements train.Device.
func (u *units) Take() bool {
	u.all.mu.Lock()
	faulty := u.all.faulty
	u.all.mu.Unlock()
	return !faulty && u.on.Take()
}

// Step implements train.Device. A device that computes other bits than the processor is of no use any more.
func (u *units) Step(in, out map[string]*tensor.Tensor) error {
	u.whole = false
	err := u.Device.Step(in, out)
	if errors.Is(err, crosscheck.ErrDiffers) {
		u.on.Close()
		u.all.retire(err, u.report)
	}
	return err
}

// State implements train.Device.
func (u *units) State(into map[string]*tensor.Tensor) error {
	err := u.Device.State(into)
	u.whole = err == nil
	return err
}

// Give implements train.Device.
func (u *units) Give() {
	if u.whole {
		u.all.mu.Lock()
		u.all.units++
		u.all.mu.Unlock()
	}
	u.whole = false
	u.on.Give()
}

// retire ends the use of a device that is faulty: by this process, and by the next one until it passes the suite again.
func (d *Device) retire(err error, report func(error)) {
	d.mu.Lock()
	d.faulty = true
	name := d.admitted.Name
	d.mu.Unlock()
	why := accelerator.Wrong(accelerator.CodeFaulty, name+" is not used any more", err.Error())
	if err := admission.Forget(d.options.Record, name); err != nil {
		why = errors.Join(why, err)
	}
	report(why)
	if d.changed != nil {
		d.changed()
	}
}
