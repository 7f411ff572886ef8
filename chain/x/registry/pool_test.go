package registry

import (
	"context"
	"fmt"
	"testing"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
)

type still struct{}

func (still) At(context.Context, int64) (canon.Digest, error) { return canon.Digest{}, nil }
func (still) SendCoinsFromAccountToModule(context.Context, sdk.AccAddress, string, sdk.Coins) error {
	return nil
}
func (still) SendCoinsFromModuleToAccount(context.Context, string, sdk.AccAddress, sdk.Coins) error {
	return nil
}
func (still) SendCoinsFromModuleToModule(context.Context, string, string, sdk.Coins) error {
	return nil
}
func (still) SpendableCoin(context.Context, sdk.AccAddress, string) sdk.Coin {
	return sdk.NewInt64Coin("uzen", 0)
}
func (still) BlockedAddr(sdk.AccAddress) bool                                    { return false }
func (still) FundCommunityPool(context.Context, sdk.Coins, sdk.AccAddress) error { return nil }

// Listing the members of a pool costs gas for its members only: two thousand other accounts change nothing. An account
// that names another pool, or none, is no member any more.
func TestMembersOfAPoolCostNothingOfOthers(t *testing.T) {
	service, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(service, nil, "", still{}, still{}, still{})
	if err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return sdk.AccAddress(fmt.Sprintf("account-%012d", i)).String() }
	register := func(i int, pool string) {
		t.Helper()
		if _, err := (messages{k}).Register(ctx, &registrypb.MsgRegister{Sender: name(i), PeerId: "peer",
			Pool: pool}); err != nil {
			t.Fatal(err)
		}
	}
	register(0, "")
	register(1, name(0))
	register(2, name(0))
	cost := func() uint64 {
		meter := storetypes.NewInfiniteGasMeter()
		if ids, err := k.Members(ctx.WithGasMeter(meter), name(0)); err != nil || len(ids) != 2 {
			t.Fatalf("%v, %v", ids, err)
		}
		return uint64(meter.GasConsumed())
	}
	alone := cost()
	for i := range 2000 {
		register(10+i, name(10+i))
	}
	if among := cost(); among > alone+alone/10 {
		t.Errorf("the members of a pool cost %d among 2000 others, %d alone", among, alone)
	}
	register(1, name(5))
	register(2, "")
	if ids, err := k.Members(ctx, name(0)); err != nil || len(ids) != 0 {
		t.Errorf("%v left, and %v", ids, err)
	}
}
