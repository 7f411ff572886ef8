package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
)

// around is a chain on which an account ordered every job, and has some of its shares.
type around struct {
	Bank
	Revenues
	consumer string
	shares   int64
}

func (a *around) GetBalance(_ context.Context, _ sdk.AccAddress, denom string) sdk.Coin {
	return sdk.NewInt64Coin(denom, a.shares)
}

func (a *around) Ordered(context.Context, string) (market.Order, error) {
	return market.Order{Consumer: a.consumer}, nil
}

func (*around) Accrue(context.Context, string, ...sdk.AccAddress) error { return nil }

func (*around) Create(context.Context, string, string) error { return nil }

func open(t *testing.T) (*around, *Keeper, sdk.Context) {
	t.Helper()
	a := &around{consumer: sdk.AccAddress("consumer............").String()}
	store, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(store, sdk.AccAddress(Name), a, nil, a, a)
	if err != nil {
		t.Fatal(err)
	}
	return a, k, ctx
}

// list lists a work of the consumer.
func (a *around) list(ctx context.Context, k *Keeper, m catalogpb.MsgList) (uint64, error) {
	files := canon.Sum("files")
	m.Sender, m.Kind, m.Title, m.Licence, m.Files = a.consumer, string(catalog.Model), "a work", "MIT", files[:]
	r, err := messages{k}.List(ctx, &m)
	return r.GetListing(), err
}

// The owner of a job cannot take the revenue of other holders of its shares with parents of its own, also not of those
// that buy shares in the same block.
func TestOwnersTakeNoRevenueOfOthers(t *testing.T) {
	a, k, ctx := open(t)
	for i := range uint32(2) {
		if _, err := a.list(ctx, k, catalogpb.MsgList{Royalty: i * 500_000}); err != nil {
			t.Fatal(err)
		}
	}
	a.shares = reward.Shares - 1
	_, err := a.list(ctx, k, catalogpb.MsgList{Job: "job", Parents: []uint64{2}})
	if !errors.Is(err, catalog.ErrParents) || !strings.Contains(err.Error(), "999999") {
		t.Errorf("a parent that takes half of the revenue of another holder: %v", err)
	}
	if _, err := a.list(ctx, k, catalogpb.MsgList{Job: "job", Parents: []uint64{1}}); err != nil {
		t.Errorf("a parent that asks for nothing: %v", err)
	}
	a.shares = reward.Shares
	if _, err := a.list(ctx, k, catalogpb.MsgList{Job: "alone", Parents: []uint64{2}}); err != nil {
		t.Errorf("the only holder: %v", err)
	}
}

// A listing binds the orders of other accounts only some blocks later, and those of its owner at once: an account that
// sees an order on its way cannot list its digests before it.
func TestListingsBindLater(t *testing.T) {
	a, k, ctx := open(t)
	digest := canon.Sum("work")
	const listed = 1000
	if _, err := a.list(ctx.WithBlockHeight(listed), k,
		catalogpb.MsgList{Royalty: 1, Digests: [][]byte{digest[:]}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job, consumer string
		height        int64
		owes          bool
	}{{"same", "victim", listed, false}, {"early", "victim", listed + catalog.MinAge - 1, false},
		{"own", a.consumer, listed, true}, {"later", "victim", listed + catalog.MinAge, true}} {
		at := ctx.WithBlockHeight(c.height)
		if err := k.Opened(at, c.job, c.consumer, []canon.Digest{{}, digest}); err != nil {
			t.Fatal(err)
		}
		if parents, err := k.parentsOf(at, c.job); err != nil || len(parents) > 0 != c.owes {
			t.Errorf("%s: %+v, %v", c.job, parents, err)
		}
	}
}
