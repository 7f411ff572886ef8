package books

import (
	"context"
	"fmt"

	sdkmath "cosmossdk.io/math"
	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"

	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/coin"
)

// others are the books in the registered coins other than the network's own: stakes, what modules owe in each
// denomination, and the community pool.
func (c counter) others(ctx context.Context,
	owed map[string]map[string]sdkmath.Int) (books []ModuleBalance, err error) {
	all, err := c.Market.Coins(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	owed[registry.Name], owed[distrtypes.ModuleName] = map[string]sdkmath.Int{}, map[string]sdkmath.Int{}
	stakes, err := c.Stakes.Of(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, s := range stakes {
		add(owed[registry.Name], s.Coin, s.Amount)
	}
	undistributed, err := c.distribution(ctx)
	if err != nil {
		return nil, err
	}
	for _, coin := range undistributed {
		owed[distrtypes.ModuleName][coin.Denom] = coin.Amount.TruncateInt()
	}
	for _, r := range all {
		for _, module := range []string{registry.Name, market.Name, reward.Name, sale.Name, hosting.Name,
			arena.Name, delegation.Name, distrtypes.ModuleName} {
			held, err := c.balance(ctx, wallet.ModuleAddress(module), r.Denom)
			if err != nil {
				return nil, fmt.Errorf("client: the books of %s in %s: %w", module, r.Name(), err)
			}
			due, known := owed[module][r.Denom]
			if !known {
				due = sdkmath.ZeroInt()
			}
			books = append(books, compared(module, r.Coin, held, due))
		}
		supply, sum, err := c.issued(ctx, r.Denom)
		if err != nil {
			return nil, err
		}
		books = append(books, compared(Supply, r.Coin, sum, supply))
	}
	return books, nil
}

// add adds grains of a coin to a sum in base units.
func add(sums map[string]sdkmath.Int, c coin.Coin, grains uint64) {
	sum, known := sums[c.Denom]
	if !known {
		sum = sdkmath.ZeroInt()
	}
	sums[c.Denom] = sum.Add(sdkmath.NewIntFromBigInt(c.Base(grains)))
}

// compared is a book in a coin, from amounts in base units.
func compared(module string, c coin.Coin, held, owed sdkmath.Int) ModuleBalance {
	b := ModuleBalance{Module: module, Coin: c}
	b.Held, _ = c.Grains(held.BigInt())
	b.Owed, _ = c.Grains(owed.BigInt())
	b.Dust = b.Held == b.Owed && !held.Equal(owed)
	return b
}

func (c counter) balance(ctx context.Context, address, denom string) (sdkmath.Int, error) {
	r, err := banktypes.NewQueryClient(c.queries).Balance(ctx,
		&banktypes.QueryBalanceRequest{Address: address, Denom: denom})
	if err != nil {
		return sdkmath.ZeroInt(), query.Known(err)
	}
	return r.Balance.Amount, nil
}

// issued is the supply of a denomination that the bank states, and the sum of all accounts.
func (c counter) issued(ctx context.Context, denom string) (supply, sum sdkmath.Int, err error) {
	sum = sdkmath.ZeroInt()
	q := banktypes.NewQueryClient(c.queries)
	r, err := q.SupplyOf(ctx, &banktypes.QuerySupplyOfRequest{Denom: denom})
	if err != nil {
		return sum, sum, query.Known(err)
	}
	err = query.Pages(func(p *sdkquery.PageRequest) (*sdkquery.PageResponse, error) {
		r, err := q.DenomOwners(ctx, &banktypes.QueryDenomOwnersRequest{Denom: denom, Pagination: p})
		for _, o := range r.GetDenomOwners() {
			sum = sum.Add(o.Balance.Amount)
		}
		return r.GetPagination(), err
	})
	return r.Amount.Amount, sum, err
}
