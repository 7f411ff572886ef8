package training

import (
	"testing"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Part looks only at the runs of which the account is a member: a thousand other runs cost nothing.
func TestWhoLeavesCostsNothingOfTheRunsOfOthers(t *testing.T) {
	service, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(service, "", nil, nil, nil, nil, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(job string, members ...crew.Member) {
		t.Helper()
		s, err := run.New(terms.Terms{
			Job: job, Spec: canon.Sum("spec"), SpecCID: "spec",
			Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis"}, Rounds: 1, Units: 1, Segments: 1,
			UnitFlops: 1, Deadlines: terms.Deadlines{Train: 100, Audit: 100, Attest: 100, Challenge: 100}, Window: 1,
		}, members, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{k.runs.Set(ctx, job, s), k.active.Set(ctx, job), k.seat(ctx, job, members)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	cost := func() uint64 {
		meter := storetypes.NewInfiniteGasMeter()
		if part, err := k.Part(ctx.WithGasMeter(meter), "me"); err != nil || !part {
			t.Fatalf("%v, %v", part, err)
		}
		return uint64(meter.GasConsumed())
	}
	begin("zz", crew.Member{ID: "me", Role: crew.Worker})
	alone := cost()
	for i := range 500 {
		begin(string(rune('a'+i%26))+string(rune('a'+i/26)), crew.Member{ID: "other", Role: crew.Worker})
	}
	if among := cost(); among > alone+alone/10 {
		t.Errorf("it costs %d among 500 runs of others, %d alone", among, alone)
	}
	if err := unseat(ctx, k, "zz", []crew.Member{{ID: "me"}}); err != nil {
		t.Fatal(err)
	}
	if part, err := k.Part(ctx, "me"); err != nil || part {
		t.Errorf("a part in a run that is over: %v, %v", part, err)
	}
}

// If there are more runs than a block ticks, they take turns, and each has its turn.
func TestRunsTakeTurns(t *testing.T) {
	service, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(service, "", nil, nil, nil, nil, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "d", "e"}
	for _, job := range names {
		if err := k.active.Set(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	for range 5 {
		turn, err := k.Turn(ctx, k.ticked, 2)
		if err != nil || len(turn) != 2 {
			t.Fatal(turn, err)
		}
		got += turn[0] + turn[1]
		if turn[0] == "c" {
			if err := k.active.Remove(ctx, "d"); err != nil { // the mark of the last turn names a run that is over
				t.Fatal(err)
			}
		}
	}
	if got != "abcdeabcea" {
		t.Errorf("turns of %s", got)
	}
	if all, err := k.Turn(ctx, k.ticked, 9); err != nil || len(all) != 4 {
		t.Error(all, err)
	}
}
