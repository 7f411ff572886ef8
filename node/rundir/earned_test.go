package rundir

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/reward"
)

// What a job paid and took adds up, receipt by receipt.
func TestByJob(t *testing.T) {
	var all []Explanation
	for _, x := range []struct {
		job    string
		kind   reward.Kind
		amount uint64
	}{{"a", reward.Work, 5}, {"b", reward.Work, 7}, {"a", reward.Slash, 9}, {"a", reward.Audit, 0},
		{"a", reward.Audit, 2}} {
		e := Explanation{}
		e.Job, e.Kind, e.Amount = x.job, x.kind, x.amount
		all = append(all, e)
	}
	want := []JobSum{{Job: "a", Received: 7, Lost: 9, Receipts: 4, Unpaid: 1}, {Job: "b", Received: 7, Receipts: 1}}
	if got := ByJob(all); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
