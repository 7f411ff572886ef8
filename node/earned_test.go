package node

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/reward"
)

func receiptAt(height int64, job string, kind reward.Kind, amount uint64) rundir.Explanation {
	e := rundir.Explanation{}
	e.Height, e.Job, e.Kind, e.Amount = height, job, kind, amount
	return e
}

// The sums of a job are those of its receipts.
func TestByJob(t *testing.T) {
	all := []rundir.Explanation{receiptAt(1, "a", reward.Work, 5), receiptAt(1, "b", reward.Work, 7),
		receiptAt(2, "a", reward.Slash, 9), receiptAt(3, "a", reward.Audit, 0), receiptAt(3, "a", reward.Audit, 2)}
	want := []rundir.JobSum{{Job: "a", ReceivedUzen: 7, LostUzen: 9, Receipts: 4, Unpaid: 1},
		{Job: "b", ReceivedUzen: 7, Receipts: 1}}
	if got := rundir.ByJob(all); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// The sums of a day are those of its receipts, and few blocks are asked for their day.
func TestByDay(t *testing.T) {
	var all []rundir.Explanation
	want := map[string]uint64{}
	days := func(height int64) string {
		if height < 100 {
			return "" // not kept any more
		}
		return fmt.Sprintf("2026-11-%02d", 1+height/1000)
	}
	for i := range int64(2000) {
		height := (i * 7919) % 3000
		all = append(all, receiptAt(height, "a", reward.Work, uint64(i)))
		want[days(height)] += uint64(i)
	}
	all = append(all, receiptAt(2999, "b", reward.Slash, 3), receiptAt(2999, "b", reward.Work, 0))
	asked := 0
	got, err := rundir.ByDay(all, func(height int64) (string, error) { asked++; return days(height), nil })
	if err != nil || asked > 60 || len(got) != 4 || got[0].Day != "2026-11-03" || got[3].Day != "" ||
		got[0].LostUzen != 3 || got[0].Unpaid == 0 {
		t.Errorf("%d asked, %+v, %v", asked, got, err)
	}
	for _, d := range got {
		if d.ReceivedUzen != want[d.Day] {
			t.Errorf("%q: %d uzen, wanted %d", d.Day, d.ReceivedUzen, want[d.Day])
		}
	}
	if got, err := rundir.ByDay(nil, nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
}
