package registry

import (
	"fmt"
	"testing"

	"cosmossdk.io/collections/colltest"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Verifiers are drawn in proportion to their stakes, even after stakes have changed.
func TestDrawsByStake(t *testing.T) {
	store, ctx := colltest.MockStore()
	k, err := NewKeeper(store, nil, "", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	stakes := map[string]uint64{}
	for i, stake := range []uint64{1, 5, 2, 8, 3, 0, 9, 4, 20, 6, 7} {
		id := fmt.Sprint("v", i)
		stakes[id] = stake * 1_000_000
		if err := k.put(ctx, registry.Participant{ID: id, Roles: []crew.Role{crew.Verifier}, Stake: 5_000_000}); err != nil {
			t.Fatal(err)
		}
		if err := k.put(ctx, registry.Participant{ID: id, Roles: []crew.Role{crew.Verifier}, Stake: stakes[id]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.put(ctx, registry.Participant{ID: "v8", Roles: []crew.Role{crew.Verifier}, Stake: stakes["v8"],
		Jailed: true}); err != nil {
		t.Fatal(err)
	}
	stakes["v8"] = 0
	total, number := uint64(0), uint64(0)
	for _, s := range stakes {
		total += s
	}
	last, err := k.tree.Last(ctx)
	if err != nil || last != 11 {
		t.Fatalf("%d places, %v", last, err)
	}
	for i := range 11 {
		id := fmt.Sprint("v", i)
		for _, at := range []uint64{number, number + stakes[id] - 1} {
			if stakes[id] == 0 {
				continue
			}
			if got, err := k.tree.At(ctx, at, last); err != nil || got != id {
				t.Errorf("number %d of %d falls to %s, want %s: %v", at, total, got, id, err)
			}
		}
		number += stakes[id]
	}
}
