package stages

import (
	"context"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/staged"
)

// Accomplices know each other before their first units, so that both lie in these, or neither does: one that hid its
// lie alone would be convicted by the values that the other serves.
func TestHidersKnowEachOther(t *testing.T) {
	var s run.State
	s.Terms.Pipeline.Flops = []uint64{1, 1, 1}
	s.Terms.Pipeline.Links = []terms.Link{{From: 0, To: 1}, {From: 1, To: 0}, {From: 1, To: 2}, {From: 2, To: 1}}
	var circle adversary.Memory
	var liars []*hider
	for i, id := range []string{"honest", "ann", "bob"} {
		s.Units = append(s.Units, &work.Unit{Index: uint32(i), Worker: id})
		if i == 0 {
			continue
		}
		p := &party.Executor{ID: id}
		Hides{}.Install(adversary.Setup{Party: p, Honest: &staged.Engine{}, Circle: &circle,
			State: func(context.Context) (run.State, error) { return s, nil }})
		liars = append(liars, p.Compute.(*hider))
	}
	for i, want := range [][]int{{2, 3}, {0, 1}} {
		places, all, err := liars[i].hidden(t.Context(), 0, uint32(i)+1)
		if err != nil || !slices.Equal(places, want) || all != []int{4, 2}[i] {
			t.Errorf("the worker of stage %d hides the links %v of %d, %v", i+1, places, all, err)
		}
	}
}
