package works

import (
	"errors"
	"testing"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// shown is work whose terms have a number of rounds.
type shown struct {
	Case
	rounds uint32
}

func (shown) Decidable(uint64) (uint64, error) { return 0, nil }

func (shown) Bases() []canon.Digest { return nil }

func (s shown) Bound(t terms.Terms) error {
	if t.Rounds != s.rounds {
		return refusal.ErrTerms
	}
	return nil
}

// onEmptyStore returns Works over an empty store, and its context.
func onEmptyStore(t *testing.T, referee Referee) (*Works, sdk.Context) {
	t.Helper()
	service, ctx := storetest.Open(t, "works")
	b := collections.NewSchemaBuilder(service)
	w := New(b, referee)
	if _, err := b.Build(); err != nil {
		t.Fatal(err)
	}
	return w, ctx
}

// Two jobs of the same work store its opening once, until both are over. A refused opening leaves nothing.
func TestOpeningIsKeptOnceUntilItsJobsAreOver(t *testing.T) {
	w, ctx := onEmptyStore(t, func(_ canon.Digest, opening []byte, numerics uint32) (Case, error) {
		if string(opening) != "opening" {
			return nil, errors.New("not an opening")
		}
		if numerics > 1 {
			return nil, market.ErrNumerics
		}
		return shown{rounds: 3}, nil
	})
	kept := func() (n int) {
		err := w.openings.Walk(ctx, nil, func([]byte, []byte) (bool, error) { n++; return false, nil })
		held := 0
		err = errors.Join(err, w.held.Walk(ctx, nil, func([]byte, uint64) (bool, error) { held++; return false, nil }))
		if err != nil || held != n {
			t.Fatalf("%d openings, %d are held: %v", n, held, err)
		}
		return n
	}
	work := terms.Terms{Spec: canon.Sum("spec"), Rounds: 3}
	if err := w.Admit(ctx, "", work, []byte("nonsense"), 1); !errors.Is(err, dispute.ErrWork) || kept() != 0 {
		t.Errorf("nonsense is admitted with %v", err)
	}
	if err := w.Admit(ctx, "", terms.Terms{Spec: work.Spec, Rounds: 4}, []byte("opening"), 1); !errors.Is(err,
		refusal.ErrTerms) ||
		kept() != 0 {
		t.Errorf("other terms are admitted with %v", err)
	}
	if err := w.Admit(ctx, "", work, []byte("opening"), 2); !errors.Is(err, market.ErrNumerics) || kept() != 0 {
		t.Errorf("another version of the numerics is admitted with %v", err)
	}
	for want, step := range []error{
		w.Admit(ctx, "", work, []byte("opening"), 1), w.Admit(ctx, "", work, []byte("opening"), 1), w.Forget(ctx, work.Spec),
	} {
		if step != nil || kept() != 1 {
			t.Errorf("after step %d %d openings: %v", want, kept(), step)
		}
	}
	if _, err := w.Admitted(ctx, work.Spec); err != nil {
		t.Error(err)
	}
	if err := w.Admit(ctx, "", work, []byte("opening"), 2); !errors.Is(err, market.ErrNumerics) {
		t.Errorf("another version of the numerics than that of a work in the cache is admitted with %v", err)
	}
	if err := errors.Join(w.Forget(ctx, work.Spec), w.Forget(ctx, work.Spec)); err != nil || kept() != 0 {
		t.Errorf("%d openings are left: %v", kept(), err)
	}
}
