package owner

import (
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/node/prepare"
)

// An owner continues with the variate of its last update if the sum of that was applied, and with the one before if it
// was not; with 0 if all owners began again.
func TestVariateFollowsSums(t *testing.T) {
	h, err := OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	of := func(x float32) []*tensor.Tensor { return []*tensor.Tensor{tensor.FromF32([]float32{x}, 1)} }
	if err := h.keep("job", &kept{since: 3, counted: 2, now: of(1), next: of(5)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job            string
		since, counted uint32
		want           float32
	}{{"job", 3, 2, 1}, {"job", 3, 3, 5}, {"job", 7, 0, 0}, {"job", 0, 3, 0}, {"other", 3, 3, 0}} {
		got, err := h.variate(c.job, federated.Announcement{Since: c.since, Counted: c.counted}, of(0))
		if err != nil || len(got) != 1 || got[0].F32()[0] != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := h.variate("job", federated.Announcement{Since: 3}, []*tensor.Tensor{tensor.FromF32([]float32{1, 2},
		2)}); err == nil {
		t.Error("a variate of another shape")
	}
}

// A round without a learning rate changes no variate, and its sum is counted: the owner does not take it for the sum of
// the round before, which was not applied.
func TestVariateOfRoundWithoutRate(t *testing.T) {
	h, err := OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	of := func(x float32) []*tensor.Tensor { return []*tensor.Tensor{tensor.FromF32([]float32{x}, 1)} }
	o := &owner{b: &prepare.CompiledJob{Job: &job.Job{}, Spec: &train.Spec{Steps: 1, Rounds: 9, Units: 1,
		Rate: train.Rate{Kind: train.Constant}}}}
	o.b.Job.Federated.Method, o.b.Job.Federated.Clip = owners.Scaffold, 1
	values, err := fixedpoint.Encode(of(0), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.keep("job", &kept{counted: 1, now: of(3), next: of(5)}); err != nil {
		t.Fatal(err)
	}
	k, err := o.next(federated.Announcement{Round: 4, Counted: 1}, unit{update: of(0), mean: of(1), own: of(3)}, values)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.keep("job", k); err != nil {
		t.Fatal(err)
	}
	got, err := h.variate("job", federated.Announcement{Counted: 2}, of(0))
	if err != nil || got[0].F32()[0] != 3 {
		t.Errorf("the variate is %v, wanted 3: %v", got, err)
	}
}
