package training

import (
	"testing"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/dispute"
)

// keeper returns a Keeper over an empty store, and its context.
func keeper(t *testing.T, referee works.Referee) (*Keeper, sdk.Context) {
	t.Helper()
	service, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(service, "", nil, nil, nil, nil, nil, nil, referee, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, ctx
}

// However many disputes a job has, an answer is bounded, and its pages contain all disputes.
func TestDisputesComeInPages(t *testing.T) {
	k, ctx := keeper(t, nil)
	for _, job := range []string{"a", "job", "z"} {
		for i := range uint32(250) {
			g := dispute.Dispute{Config: dispute.Config{Job: job, Round: i / 100, Unit: i % 10}, Segment: i}
			if err := k.disputes.Set(ctx, collections.Join4(job, i/100, i%10, i%100/10), g); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := map[uint32]bool{}
	for next, pages := (&trainingpb.QueryDisputesRequest{Job: "job", Limit: 30}), 1; ; pages++ {
		r, err := Queries{k}.Disputes(ctx, next)
		if err != nil || len(r.Games) > 30 || pages > 9 {
			t.Fatalf("page %d: %d games, %v", pages, len(r.Games), err)
		}
		for _, raw := range r.Games {
			var g dispute.Dispute
			if err := canon.Unmarshal(raw, &g); err != nil || g.Config.Job != "job" || found[g.Segment] {
				t.Fatalf("page %d has %+v: %v", pages, g, err)
			}
			found[g.Segment] = true
		}
		if !r.More {
			break
		}
		next.Round, next.Unit, next.Number = r.Round, r.Unit, r.Number
	}
	if r, err := (Queries{k}).Disputes(ctx, &trainingpb.QueryDisputesRequest{Job: "job", Limit: 1 << 30}); err != nil ||
		len(r.Games) != maxGames {
		t.Errorf("%d games at once: %v", len(r.Games), err)
	}
	if len(found) != 250 {
		t.Errorf("%d of 250 are found", len(found))
	}
}
