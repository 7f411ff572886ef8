package cpu

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// Traces at the same time, and those after them, share operators that were compiled alone, and give the same values.
func TestParallelTraces(t *testing.T) {
	p, in := programtest.Layer(t, 2, 19, 3, 7)
	x, err := Compile(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	trace := func() (roots []canon.Digest, err error) {
		err = x.Trace(in, func(_ int, value *tensor.Tensor) error {
			roots = append(roots, value.Root())
			return nil
		})
		return roots, err
	}
	want, err := trace()
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for range 3 {
		g.Go(func() error {
			got, err := trace()
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("operator %d has another value", i)
				}
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Sessions that begin at the same time ask one Exec which tensors may share memory.
func TestParallelShares(t *testing.T) {
	p, _ := programtest.Layer(t, 2, 19, 3, 7)
	x, err := Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			for _, i := range p.Ops {
				for _, o := range p.Outputs {
					x.Shares(i.Name, o.Name)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
