package federated_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
)

// joined takes part with some owners, and returns the report.
func joined(t *testing.T, c *federated.Coordinator, all []owner.Options, check func(i int, r *owner.Result,
	err error)) *federated.Report {
	t.Helper()
	var running sync.WaitGroup
	for i, o := range all {
		running.Go(func() {
			r, err := owner.Join(context.Background(), o)
			check(i, r, err)
		})
	}
	r, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.Linger(context.Background(), 10*time.Second)
	running.Wait()
	return r
}

// Of control variates the coordinator has the sum of those that owners keep, whatever was clipped.
func TestVariatesAddUp(t *testing.T) {
	dir := t.TempDir()
	c, s := coordinator(t, dir, "federated.method=scaffold", "federated.clip=0.01", "training.learning_rate=0.1")
	var all []owner.Options
	var homes []string
	for i := range 4 {
		o := one(t, i, s.URL)
		home := t.TempDir()
		_ = o.Home.Close()
		h, err := owner.OpenHome(home)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		o.Home, homes = h, append(homes, home)
		all = append(all, o)
	}
	r := joined(t, c, all, func(i int, r *owner.Result, err error) {
		if err != nil || r.Sent != 3 {
			t.Errorf("owner %d: %+v, %v", i, r, err)
		}
	})
	if r.Rounds != 3 || !(*r.FinalLoss < *r.FirstLoss) {
		t.Errorf("%+v", r)
	}
	open := func(pattern string) *safetensors.File {
		found, _ := filepath.Glob(pattern)
		if len(found) != 1 {
			t.Fatalf("%s: %v", pattern, found)
		}
		b, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Open(b)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	sum, err := open(filepath.Join(dir, federated.FileCheckpoint)).Tensor("variates/transformer.wte.weight")
	if err != nil {
		t.Fatal(err)
	}
	off, size := make([]float64, len(sum.F32())), 0.0
	for _, home := range homes {
		own, err := open(filepath.Join(home, "variates", "*.safetensors")).Tensor("next/0")
		if err != nil || !own.Shape.Equal(sum.Shape) {
			t.Fatal(own.Shape, sum.Shape, err)
		}
		for k, x := range own.F32() {
			off[k] += float64(x)
			size = max(size, float64(x))
		}
	}
	if size == 0 {
		t.Fatal("all variates are 0")
	}
	for k, x := range sum.F32() {
		if d := off[k] - float64(x); d > 1e-6*size || d < -1e-6*size {
			t.Fatalf("element %d: the sum is %v, and the owners have %v, of at most %v", k, x, off[k], size)
		}
	}
}
