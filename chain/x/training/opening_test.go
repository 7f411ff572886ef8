package training

import (
	"errors"
	"testing"

	"cosmossdk.io/collections"
	"github.com/cosmos/cosmos-sdk/runtime"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/testutil"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// shown is work whose terms have a number of rounds.
type shown struct {
	Case
	rounds uint32
}

func (s shown) Bound(t run.Terms) error {
	if t.Rounds != s.rounds {
		return run.ErrTerms
	}
	return nil
}

// keeper is one on an empty store, and a context of it.
func keeper(t *testing.T, referee Referee) (*Keeper, sdk.Context) {
	t.Helper()
	key := storetypes.NewKVStoreKey(Name)
	ctx := testutil.DefaultContextWithDB(t, key, storetypes.NewTransientStoreKey("transient")).Ctx
	k, err := NewKeeper(runtime.NewKVStoreService(key), "", nil, nil, nil, nil, nil, referee, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, ctx
}

// However many disputes a job has, an answer has a bound, and all are found.
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

// An opening is stored once for two jobs of the same work, until both are over; what is refused leaves nothing.
func TestOpeningIsKeptOnceUntilItsJobsAreOver(t *testing.T) {
	k, ctx := keeper(t, func(_ canon.Digest, opening []byte) (Case, error) {
		if string(opening) != "opening" {
			return nil, errors.New("not an opening")
		}
		return shown{rounds: 3}, nil
	})
	kept := func() (n int) {
		err := k.openings.Walk(ctx, nil, func([]byte, []byte) (bool, error) { n++; return false, nil })
		held := 0
		err = errors.Join(err, k.held.Walk(ctx, nil, func([]byte, uint64) (bool, error) { held++; return false, nil }))
		if err != nil || held != n {
			t.Fatalf("%d openings, %d are held: %v", n, held, err)
		}
		return n
	}
	work := run.Terms{Spec: canon.Sum("spec"), Rounds: 3}
	if err := k.Admit(ctx, work, []byte("nonsense")); !errors.Is(err, dispute.ErrWork) || kept() != 0 {
		t.Errorf("nonsense is admitted with %v", err)
	}
	if err := k.Admit(ctx, run.Terms{Spec: work.Spec, Rounds: 4}, []byte("opening")); !errors.Is(err, run.ErrTerms) ||
		kept() != 0 {
		t.Errorf("other terms are admitted with %v", err)
	}
	for want, step := range []error{
		k.Admit(ctx, work, []byte("opening")), k.Admit(ctx, work, []byte("opening")), k.Forget(ctx, work.Spec),
	} {
		if step != nil || kept() != 1 {
			t.Errorf("after step %d %d openings: %v", want, kept(), step)
		}
	}
	if _, err := k.admitted(ctx, work.Spec); err != nil {
		t.Error(err)
	}
	if err := errors.Join(k.Forget(ctx, work.Spec), k.Forget(ctx, work.Spec)); err != nil || kept() != 0 {
		t.Errorf("%d openings are left: %v", kept(), err)
	}
}
