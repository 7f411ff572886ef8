package federated

import (
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// The variate of an owner that is in none of the last sums cannot be taken out of their sum: all begin again.
func TestVariatesOfOwnersThatLeave(t *testing.T) {
	round := func(n uint32, void string, sent ...string) Record { return Record{Round: n, Void: void, Sent: sent} }
	rounds := []Record{round(0, "", "a", "b", "c"), round(1, "no sum", "a", "b", "c"), round(2, "", "a", "b"),
		round(3, "", "a", "b")}
	v := variates{sum: []*tensor.Tensor{tensor.FromF32([]float32{6}, 1)}}
	for _, r := range rounds {
		v.count(r)
	}
	if got := v.mean()[0].F32()[0]; got != 2 {
		t.Errorf("the mean of three variates is %v", got)
	}
	if n := v.of["c"].counted; n != 1 {
		t.Errorf("%d sums have an update of c", n)
	}
	if v.forget(4, 3); v.sum[0].F32()[0] != 6 || v.since != 0 {
		t.Errorf("an owner that is missing in two sums: %+v", v)
	}
	v.count(round(4, "", "a", "b"))
	if v.forget(5, 3); v.sum[0].F32()[0] != 0 || v.since != 5 || v.of["a"].counted != 0 {
		t.Errorf("one that is missing in three: %+v", v)
	}
	var none variates
	none.count(rounds[0])
	if none.forget(5, 3); none.since != 0 || none.mean() != nil || none.of != nil {
		t.Errorf("a job without variates: %+v", none)
	}
}
