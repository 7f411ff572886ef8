package shared

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/crosscheck"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
	"github.com/starling-network/starling/protocol/registry"
)

// admitted is a device of a process, which no driver has.
func admitted(t *testing.T, buffer int64, changed func()) *Device {
	return &Device{ctx: t.Context(), end: func() {}, changed: changed, jobs: map[canon.Digest]*accelerator.Device{},
		options: admission.Options{Record: filepath.Join(t.TempDir(), admission.FileRecord)},
		admitted: &admission.Admitted{At: 2, Capabilities: device.Capabilities{Name: "card", Driver: "1.2",
			Memory: 24 << 30, Buffer: buffer, Double: true}}}
}

// doubling is a job whose step doubles its state.
func doubling(t *testing.T) *train.Task {
	t.Helper()
	b := program.NewBuilder()
	w := b.Input(train.Param+"w", tensor.Make(tensor.Float32, 1<<10))
	twice, err := b.Apply(program.Add, w, w)
	if err != nil {
		t.Fatal(err)
	}
	b.Output(train.Param+"w", twice)
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &train.Task{Step: p, Exec: exec, Spec: &train.Spec{Batch: 8}}
}

// wrong is a device that adds one to the state.
type wrong struct{ w *tensor.Tensor }

func (wrong) Take() bool { return true }
func (wrong) Give()      {}
func (x *wrong) Begin(in map[string]*tensor.Tensor, _ int) error {
	x.w = in[train.Param+"w"].Clone()
	return nil
}
func (x *wrong) Step(_, _ map[string]*tensor.Tensor) error {
	x.w.F32()[3]++
	return nil
}
func (x *wrong) State(into map[string]*tensor.Tensor) error {
	copy(into[train.Param+"w"].Bytes(), x.w.Bytes())
	return nil
}

// A device that computes other bits is used by no job any more, is declared no more, and has to pass the suite again.
func TestFaulty(t *testing.T) {
	changed := 0
	d, task := admitted(t, 1<<20, func() { changed++ }), doubling(t)
	records := `{"devices":[{"name":"card"},{"name":"another"}]}`
	if err := os.WriteFile(d.options.Record, []byte(records), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed []error
	fail := func(err error) { failed = append(failed, err) }
	u := d.For(task, fail).(*units)
	u.Device = crosscheck.New(&wrong{}, task)
	if words, h := d.Declare(registry.Hardware{}); h.Kind != registry.GPU || h.Memory != 24<<10 || h.Devices != 1 ||
		!strings.HasPrefix(words, "card by OpenCL, driver 1.2; ") {
		t.Errorf("%q, %+v", words, h)
	}
	if s := d.Status(); s.Uses != "opencl:2" || s.Name != "card" || s.Faulty {
		t.Errorf("%+v", s)
	}
	if !u.Take() {
		t.Fatal("the device is not used")
	}
	in := map[string]*tensor.Tensor{train.Param + "w": tensor.New(tensor.Make(tensor.Float32, 1<<10))}
	if err := u.Begin(in, 1); err != nil {
		t.Fatal(err)
	}
	if err := u.Step(nil, nil); !errors.Is(err, crosscheck.ErrDiffers) {
		t.Fatal(err)
	}
	u.Give()
	if e, ok := errors.AsType[*accelerator.Error](errors.Join(failed...)); len(failed) != 1 || !ok ||
		e.Code != accelerator.CodeFaulty || !strings.Contains(e.Why, `element 3 of`) {
		t.Errorf("%v", failed)
	}
	if s := d.Status(); u.Take() || d.For(task, fail) != nil || !s.Faulty || s.Uses != "cpu" || s.Units != 0 ||
		!strings.Contains(s.Why, "element 3 of") {
		t.Errorf("it is used still: %+v", s)
	}
	if words, h := d.Declare(registry.Hardware{}); changed != 1 || h.Kind == registry.GPU || words != Processor() {
		t.Errorf("%d declarations, %q, %+v", changed, words, h)
	}
	if kept, err := os.ReadFile(d.options.Record); err != nil || strings.Contains(string(kept), "card") ||
		!strings.Contains(string(kept), "another") {
		t.Errorf("%s, %v", kept, err)
	}
}

// A job that needs more than the device has is computed by the processor, and the error says what fits.
func TestFits(t *testing.T) {
	task := doubling(t) // of 4 KiB for the state and a little more
	for buffer, fit := range map[int64]string{4300: "about 6 examples of the 8", 100: "leave no room"} {
		d := admitted(t, buffer, nil)
		var failed error
		if d.For(task, func(err error) { failed = err }) != nil {
			t.Fatal("it fits")
		}
		e, ok := errors.AsType[*accelerator.Error](failed)
		if !ok || e.Code != accelerator.CodeMemory || !strings.Contains(e.Why, fit) {
			t.Errorf("%v, want %s", failed, fit)
		}
	}
	if (*Device)(nil).For(task, nil) != nil {
		t.Error("there is a device without one")
	}
}

// The processor computes the units of a job of version 1 of the numerics in place of a device without numbers of 64
// bits, which computes those of version 2.
func TestNumericsOfTheDevice(t *testing.T) {
	d, task := admitted(t, 1<<20, func() {}), doubling(t)
	d.admitted.Double = false
	var failed error
	if d.For(task, func(err error) { failed = err }) != nil {
		t.Error("the device is used for version 1")
	}
	if e, ok := errors.AsType[*accelerator.Error](failed); !ok || e.Code != accelerator.CodeNumerics {
		t.Errorf("%v", failed)
	}
	task.Step = task.Step.In(kernel.Version2)
	if d.For(task, func(err error) { t.Error(err) }) == nil {
		t.Error("the device is not used for version 2")
	}
}
