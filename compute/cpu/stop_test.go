package cpu

import (
	"bytes"
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// A run is stopped before any step that comes before the first write over an input, and made again with the same bits.
// After that write it runs to its end.
func TestStoppedRunsLeaveTheirInputs(t *testing.T) {
	b := program.NewBuilder()
	shape := tensor.Make(tensor.Float32, 4, 4)
	w := b.Input("w", shape)
	apply := func(k program.Kind, in ...program.Value) program.Value {
		t.Helper()
		v, err := b.Apply(k, in...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	dot := func(x program.Value) program.Value {
		t.Helper()
		v, err := b.Dot(x, []int{1}, nil, w, []int{0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	x := dot(dot(w))
	next := apply(program.Add, w, x)
	b.Output("w", next)
	after, err := b.Dot(next, []int{1}, nil, x, []int{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("after", after)
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	exec, err := Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !exec.Shares("w", "w") {
		t.Fatal("the program does not write over its input")
	}
	start := tensor.New(shape)
	for i := range start.F32() {
		start.F32()[i] = float32(i) / 16
	}
	want, err := exec.Run(map[string]*tensor.Tensor{"w": start})
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for at := range len(exec.steps) {
		in := start.Clone()
		out := map[string]*tensor.Tensor{"w": in, "after": tensor.New(shape)}
		asked := 0
		exec.StopWhen(func() bool { asked++; return asked == at+1 })
		err := exec.RunInto(map[string]*tensor.Tensor{"w": in}, out)
		if errors.Is(err, ErrStopped) {
			if stopped++; !bytes.Equal(in.Bytes(), start.Bytes()) {
				t.Errorf("stopped before step %d, it changed its input", at)
			}
			err = exec.RunInto(map[string]*tensor.Tensor{"w": in}, out)
		}
		if err != nil {
			t.Fatal(err)
		}
		programtest.SameBits(t, "w", out["w"], want["w"])
		programtest.SameBits(t, "after", out["after"], want["after"])
	}
	if stopped == 0 || stopped == len(exec.steps) {
		t.Errorf("stopped before %d of %d steps", stopped, len(exec.steps))
	}
}
