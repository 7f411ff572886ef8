package opencl

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// opened returns a device that can be exact, or skips the test.
func opened(t testing.TB) *Device {
	t.Helper()
	list, err := Devices()
	if err != nil {
		t.Skipf("no device runs the kernels: %v", err)
	}
	for _, d := range list {
		missing := d.Missing()
		if missing != "" {
			t.Logf("%s lacks %s", d.Name, missing)
			continue
		}
		if err := d.Open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	}
	t.Skip("no device runs the kernels: the driver has none that could be exact")
	return nil
}

// checkRun runs a program on a device, twice, and demands the bits of the processor.
func checkRun(t *testing.T, d device.Device, p *program.Program, in map[string]*tensor.Tensor) {
	t.Helper()
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, wrong := x.Run(in)
	r, err := device.Compile(d, p, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	for range 2 {
		for name, v := range in {
			if err := r.Put(name, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Run(); fmt.Sprint(err) != fmt.Sprint(wrong) {
			t.Fatalf("the device says %v, the processor %v", err, wrong)
		}
		if wrong != nil {
			return
		}
		for _, o := range p.Outputs {
			got := tensor.New(want[o.Name].Shape)
			if err := r.Get(o.Name, got); err != nil {
				t.Fatal(err)
			}
			programtest.SameBits(t, fmt.Sprintf("%s of value %d", p.Ops[o.Value].Kind, o.Value), got, want[o.Name])
		}
	}
}

func TestRandomProgramsOnTheDevice(t *testing.T) {
	d := opened(t)
	apart := uint64(20) // a driver takes seconds to compile one
	if *long {
		apart = 4
	}
	for seed := uint64(0); seed < 60; seed += apart {
		p, in := programtest.Random(t, seed, 5+int(seed)%60)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkRun(t, d, p, in) })
	}
}

func TestAttentionOnTheDevice(t *testing.T) {
	d := opened(t)
	p, in := programtest.Attention(t, 2, 4, 2, 130, 8)
	checkRun(t, d, p, in)
	p, in = programtest.Layer(t, 2, 19, 3, 7)
	checkRun(t, d, p, in)
}

// compared is the comparison of a device, in some pieces of elements.
func compared(d device.Device, elements, pieces int) (r suite.Report, err error) {
	s := suite.New(d, elements)
	defer s.Close()
	for at := range s.Cases() {
		for piece := range pieces {
			part, err := s.Run(at, piece)
			if r.Add(part); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

func TestSuiteOnTheDevice(t *testing.T) {
	r, err := compared(opened(t), 1000, 2)
	if err != nil || r.Differ() != 0 || len(r.OnHost) > 0 {
		t.Errorf("%d of %d elements differ, %s; on the host: %v; %v", r.Differ(), r.Elements(), r.Failed(), r.OnHost, err)
	}
}

// TestIndexOutOfRangeOnTheDevice demands the error of the processor.
func TestIndexOutOfRangeOnTheDevice(t *testing.T) {
	d := opened(t)
	for _, kind := range []program.Kind{program.TakeRows, program.AddRows} {
		b := program.NewBuilder()
		rows := b.Input("rows", tensor.Make(tensor.Int32, 2))
		operands := []program.Value{b.Input("table", tensor.Make(tensor.Float32, 3, 4)), rows}
		in := map[string]*tensor.Tensor{"rows": tensor.FromI32([]int32{1, -7}, 2),
			"table": tensor.New(tensor.Make(tensor.Float32, 3, 4))}
		if kind == program.AddRows {
			operands = append(operands, b.Input("updates", tensor.Make(tensor.Float32, 2, 4)))
			in["updates"] = tensor.New(tensor.Make(tensor.Float32, 2, 4))
		}
		v, err := b.Apply(kind, operands...)
		if err != nil {
			t.Fatal(err)
		}
		b.Output("out", v)
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		checkRun(t, d, p, in)
	}
}
