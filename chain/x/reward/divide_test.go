package reward

import (
	"context"
	"errors"
	"testing"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// purse is a bank with one account, and a catalog in which a model has two parents.
type purse struct {
	Bank
	taken sdk.Coins
}

func (p *purse) SendCoinsFromAccountToModule(_ context.Context, _ sdk.AccAddress, _ string, amount sdk.Coins) error {
	p.taken = p.taken.Add(amount...)
	return nil
}

func (*purse) Split(_ context.Context, job string, amount uint64) ([]catalog.Payment, error) {
	return []catalog.Payment{{Pool: job, Amount: amount - amount/2}, {Pool: "parent", Amount: amount/2 - amount/8},
		{Pool: "full", Amount: amount / 8}}, nil
}

func (*purse) Shares(_ context.Context, _ string, _ sdk.AccAddress, balance uint64) (uint64, error) {
	return balance, nil
}

// A parent that holds as much as is counted gets no more, and its part stays with the model; a model that does takes
// nothing. The payer keeps its part of the rest alone, and pays exactly what the models hold.
func TestFullModelsTakeNoMore(t *testing.T) {
	dai := coin.Coin{Denom: "adai", Symbol: "dai", Exponent: 18}
	for _, c := range []coin.Coin{{}, dai} {
		store, ctx := storetest.Open(t, Name)
		bank := &purse{}
		k, err := NewKeeper(store, "", bank, nil, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		k.Connect(nil, bank)
		most := uint64(1<<63 - 1)
		for job, held := range map[string]uint64{"job": 7, "parent": 0, "full": most - 100} {
			if err := errors.Join(k.setModel(ctx, reward.Model{Job: job}),
				k.setModel(ctx, reward.Model{Job: job, Coin: c, Held: held})); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := k.Divide(ctx, nil, "job", c, 8_000_000, 100_000)
		if err != nil || kept != 500_000 {
			t.Errorf("%s: %d is kept: %v", c.Name(), kept, err)
		}
		for job, want := range map[string]uint64{"job": 7 + 5_000_000 - kept, "parent": 3_000_000, "full": most - 100} {
			if m, err := k.modelIn(ctx, job, c); err != nil || m.Held != want {
				t.Errorf("%s holds %d of %s, want %d: %v", job, m.Held, c.Name(), want, err)
			}
		}
		scale := sdkmath.OneInt()
		if !c.Own() {
			scale = sdkmath.NewInt(1_000_000_000)
		}
		if paid := bank.taken[0].Amount; !paid.Equal(sdkmath.NewInt(7_500_000).Mul(scale)) {
			t.Errorf("%s: %s is paid", c.Name(), paid)
		}
		if _, err := k.Divide(ctx, nil, "full", c, 8_000_000, 0); !errors.Is(err, ErrAmount) {
			t.Errorf("a full model takes %v", err)
		}
		for _, amount := range []uint64{0, maxRevenue} {
			if _, err := k.Divide(ctx, nil, "job", c, amount, 0); !errors.Is(err, ErrAmount) {
				t.Errorf("%d: %v", amount, err)
			}
		}
		if _, err := k.Divide(ctx, nil, "none", c, 8, 0); !errors.Is(err, ErrNoModel) {
			t.Error(err)
		}
	}
}

// GetBalance implements Bank.
func (*purse) GetBalance(_ context.Context, _ sdk.AccAddress, denom string) sdk.Coin {
	return sdk.NewInt64Coin(denom, reward.Shares)
}

// Find implements Coins.
func (*purse) Find(_ context.Context, denom string) (coin.Registered, error) {
	if denom != "adai" {
		return coin.Registered{}, coin.ErrCoin
	}
	return coin.Registered{}, nil
}

// Any account makes denominations, and blocks divide all of those that are fees or in the community pool: these take
// the coins of the network alone. Fees that were taken before are divided.
func TestSharesAreNoFees(t *testing.T) {
	store, ctx := storetest.Open(t, Name)
	bank := &purse{}
	k, err := NewKeeper(store, "", bank, nil, nil, nil, bank)
	if err != nil {
		t.Fatal(err)
	}
	k.Connect(nil, bank)
	if err := k.setModel(ctx, reward.Model{Job: "listing/1"}); err != nil {
		t.Fatal(err)
	}
	account := sdk.AccAddress("account")
	for _, c := range []struct {
		denom    string
		from, to sdk.AccAddress
		want     error
	}{
		{"model/listing/1", account, feeAccount, coin.ErrCoin}, {"model/listing/1", account, poolAccount, coin.ErrCoin},
		{"ibc/00", account, feeAccount, coin.ErrCoin}, {"adai", account, poolAccount, nil},
		{adapter.Denom, account, feeAccount, nil}, {"model/listing/1", feeAccount, poolAccount, nil},
		{"model/listing/1", poolAccount, account, nil}, {"ibc/00", account, account, nil},
	} {
		_, err := k.BeforeSend(ctx, c.from, c.to, sdk.NewCoins(sdk.NewInt64Coin(c.denom, 1)))
		if !errors.Is(err, c.want) {
			t.Errorf("%s from %s to %s: %v", c.denom, c.from, c.to, err)
		}
	}
}
