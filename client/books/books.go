// Package books counts the coins of a chain twice: what the account of each module holds, and what the module has
// written down that it holds for others.
package books

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/catalog"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/coin"
)

// ModuleBalance is the account of a module in one coin: the amount that it holds, and the amount that it must hold for
// others by its own state, in uzen, or in grains of another coin. The book named supply has the sum of all accounts,
// and the supply that the bank states.
type ModuleBalance struct {
	Module string `json:"module"`
	Held   uint64 `json:"held_uzen"`
	Owed   uint64 `json:"owed_uzen"`
	Spare  bool   `json:"spare,omitempty"` // the account may receive coins: it may hold more than it owes

	Coin coin.Coin `json:"coin,omitzero"`  // absent: the network's own
	Dust bool      `json:"dust,omitempty"` // the two differ by a part of a grain
}

// Supply is the name of the book of a whole coin.
const Supply = "supply"

// Balanced reports whether nothing is missing, and nothing too much.
func (b ModuleBalance) Balanced() bool {
	return b.Held == b.Owed && !b.Dust || b.Spare && b.Held > b.Owed
}

// Count counts the coins of a chain twice, module for module. It asks for many things: an account that reads at one
// height (client.Client.At) is the one to use while blocks are made.
func Count(ctx context.Context, account module.Account) ([]ModuleBalance, error) {
	c := counter{module.Of(account), account}
	budgets, err := c.budgets(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", market.Name, err)
	}
	sales, err := c.sales(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", sale.Name, err)
	}
	hosted, err := c.hosted(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", hosting.Name, err)
	}
	revenues, err := c.revenues(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", reward.Name, err)
	}
	contests, err := c.contests(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", arena.Name, err)
	}
	delegated, err := c.delegated(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", delegation.Name, err)
	}
	ownOf := func(sums map[string]sdkmath.Int) func(context.Context) (sdkmath.Int, error) {
		return func(context.Context) (sdkmath.Int, error) { return sums[coin.Coin{}.Denom], nil }
	}
	owed := []struct {
		module string
		count  func(context.Context) (sdkmath.Int, error)
	}{
		{registry.Name, c.stakes}, {market.Name, ownOf(budgets)}, {reward.Name, ownOf(revenues)}, {sale.Name, ownOf(sales)},
		{payout.Name, c.abroad}, {hosting.Name, ownOf(hosted)}, {arena.Name, ownOf(contests)},
		{delegation.Name, ownOf(delegated)},
		{stakingtypes.BondedPoolName, c.bonded}, {stakingtypes.NotBondedPoolName, c.unbonding},
		{distrtypes.ModuleName, c.undistributed}, {govtypes.ModuleName, c.deposits},
	}
	var books []ModuleBalance
	for _, o := range owed {
		n, err := o.count(ctx)
		if err != nil {
			return nil, fmt.Errorf("client: the books of %s: %w", o.module, err)
		}
		b := ModuleBalance{Module: o.module, Spare: o.module == govtypes.ModuleName}
		if b.Owed, err = amount(n); err != nil {
			return nil, err
		}
		if b.Held, err = c.Coins.Balance(ctx, wallet.ModuleAddress(o.module)); err != nil {
			return nil, err
		}
		books = append(books, b)
	}
	supply, err := c.supply(ctx)
	if err != nil {
		return nil, err
	}
	offered, err := c.offered(ctx)
	if err != nil {
		return nil, fmt.Errorf("client: the books of %s: %w", catalog.Name, err)
	}
	others, err := c.others(ctx, map[string]map[string]sdkmath.Int{market.Name: budgets,
		reward.Name: revenues, sale.Name: sales, hosting.Name: hosted, arena.Name: contests,
		delegation.Name: delegated})
	return append(append(books, offered, supply), others...), err
}

type counter struct {
	module.Modules
	queries grpc.ClientConnInterface
}

func amount(n sdkmath.Int) (uint64, error) {
	if !n.IsUint64() {
		return 0, fmt.Errorf("client: an amount of %s uzen", n)
	}
	return n.Uint64(), nil
}

// stakes of all participants.
func (c counter) stakes(ctx context.Context) (sum sdkmath.Int, err error) {
	sum = sdkmath.ZeroInt()
	all, err := c.Registry.Participants(ctx)
	for _, p := range all {
		sum = sum.Add(sdkmath.NewIntFromUint64(p.Stake))
	}
	return sum, err
}

// budgets is what remains of those of all jobs, in base units of each denomination.
func (c counter) budgets(ctx context.Context) (sums map[string]sdkmath.Int, err error) {
	own := coin.Coin{}
	sums = map[string]sdkmath.Int{own.Denom: sdkmath.ZeroInt()}
	jobs, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	orders, err := c.Market.Orders(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range orders {
		jobs = append(jobs, o.ID)
	}
	for _, job := range jobs { // those that have a run, or are on order
		o, err := c.Market.PlacedOrder(ctx, job)
		if err != nil {
			return nil, err
		}
		e, err := c.Market.Escrow(ctx, job)
		if err != nil {
			return nil, err
		}
		if e.Paid+e.Fee+e.Refunded > e.Budget {
			return nil, fmt.Errorf("job %s spent more than its budget: %+v", job, e)
		}
		add(sums, o.Coin, e.Remaining())
	}
	return sums, nil
}

// sales is what the network holds of sellers and buyers of files, in base units of each denomination.
func (c counter) sales(ctx context.Context) (sums map[string]sdkmath.Int, err error) {
	own := coin.Coin{}
	sums = map[string]sdkmath.Int{own.Denom: sdkmath.ZeroInt()}
	coins, err := c.Market.ByDenom(ctx)
	if err != nil {
		return nil, err
	}
	offers, err := c.Sale.Offers(ctx, true)
	if err != nil {
		return nil, err
	}
	for _, o := range offers {
		in := coins[o.Terms.Denom].Coin // a coin stays registered
		add(sums, in, o.Held())
		for range o.Open {
			add(sums, in, o.Terms.Price)
		}
	}
	return sums, nil
}

// hosted is what the network holds of providers and payers of hosted models, in base units of each denomination.
func (c counter) hosted(ctx context.Context) (sums map[string]sdkmath.Int, err error) {
	own := coin.Coin{}
	sums = map[string]sdkmath.Int{own.Denom: sdkmath.ZeroInt()}
	coins, err := c.Market.ByDenom(ctx)
	if err != nil {
		return nil, err
	}
	places, err := c.Hosting.Places(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		add(sums, own, p.Held())
	}
	accused, err := c.Hosting.Accusations(ctx, true)
	if err != nil {
		return nil, err
	}
	for _, a := range accused {
		add(sums, own, a.Bond)
	}
	channels, err := c.Hosting.Channels(ctx, "", false)
	for _, h := range channels {
		add(sums, coins[h.Denom].Coin, h.Held())
	}
	return sums, err
}

// abroad is the uzen that stand for tokens on other chains: what was withdrawn, less what deposits returned.
func (c counter) abroad(ctx context.Context) (sum sdkmath.Int, err error) {
	sum = sdkmath.ZeroInt()
	p, err := c.Payout.Rules(ctx)
	if err != nil {
		return sum, err
	}
	for _, b := range p.Bridges {
		entries, err := c.Payout.Entries(ctx, b.EVM)
		if err != nil {
			return sum, err
		}
		zen := b.Zen()
		for _, e := range entries {
			if e.Token == zen {
				sum = sum.Add(sdkmath.NewIntFromBigInt(new(big.Int).SetBytes(e.Total)))
			}
		}
		s, err := c.Payout.State(ctx, b.EVM)
		if err != nil && !errors.Is(err, query.ErrNotFound) {
			return sum, err
		}
		sum = sum.Sub(sdkmath.NewIntFromUint64(s.Returned))
	}
	return sum, nil
}

// revenues are the parts of the payments for models that the holders of their shares have not claimed, in base units of
// each denomination.
func (c counter) revenues(ctx context.Context) (sums map[string]sdkmath.Int, err error) {
	sums = map[string]sdkmath.Int{coin.Coin{}.Denom: sdkmath.ZeroInt()}
	works, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	listings, err := c.Catalog.Listings(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, l := range listings {
		if l.Terms.Job == "" {
			works = append(works, l.Pool())
		}
	}
	for _, work := range works {
		m, err := c.Reward.Model(ctx, work, "")
		if errors.Is(err, query.ErrNotFound) {
			continue // no account holds shares
		}
		if err != nil {
			return nil, err
		}
		add(sums, m.Coin, m.Held)
		for _, in := range m.Coins {
			add(sums, in.Coin, in.Held)
		}
	}
	return sums, nil
}

// offered compares the shares of models that the account of the catalog holds with those of its offers. The sum of all
// models counts, and each of them: shares of one that are missing are not replaced by those of another.
func (c counter) offered(ctx context.Context) (ModuleBalance, error) {
	b := ModuleBalance{Module: catalog.Name, Coin: coin.Coin{Denom: reward.Denom(""), Symbol: "shares"}}
	left := map[string]uint64{}
	offers, err := c.Catalog.ShareOffers(ctx, false)
	if err != nil {
		return b, err
	}
	for _, o := range offers {
		left[reward.Denom(o.Pool)] += o.Left
		b.Owed += o.Left
	}
	err = query.Pages(func(p *sdkquery.PageRequest) (*sdkquery.PageResponse, error) {
		r, err := banktypes.NewQueryClient(c.queries).AllBalances(ctx,
			&banktypes.QueryAllBalancesRequest{Address: wallet.ModuleAddress(catalog.Name), Pagination: p})
		for _, held := range r.GetBalances() {
			n := held.Amount.Uint64()
			b.Held += n
			b.Dust = b.Dust || left[held.Denom] != n
		}
		return r.GetPagination(), err
	})
	return b, err
}

// validators of the staking module, whatever their status.
func (c counter) validators(ctx context.Context) (all []stakingtypes.Validator, err error) {
	err = query.Pages(func(p *sdkquery.PageRequest) (*sdkquery.PageResponse, error) {
		r, err := stakingtypes.NewQueryClient(c.queries).Validators(ctx, &stakingtypes.QueryValidatorsRequest{Pagination: p})
		all = append(all, r.GetValidators()...)
		return r.GetPagination(), err
	})
	return all, err
}

// bonded is what stands behind the votes of validators.
func (c counter) bonded(ctx context.Context) (sum sdkmath.Int, err error) {
	sum = sdkmath.ZeroInt()
	all, err := c.validators(ctx)
	for _, v := range all {
		if v.IsBonded() {
			sum = sum.Add(v.Tokens)
		}
	}
	return sum, err
}

// unbonding is what stands behind validators who do not vote, and what delegators have taken back and not received.
func (c counter) unbonding(ctx context.Context) (sum sdkmath.Int, err error) {
	sum = sdkmath.ZeroInt()
	all, err := c.validators(ctx)
	if err != nil {
		return sum, err
	}
	for _, v := range all {
		if !v.IsBonded() {
			sum = sum.Add(v.Tokens)
		}
		err := query.Pages(func(p *sdkquery.PageRequest) (*sdkquery.PageResponse, error) {
			r, err := stakingtypes.NewQueryClient(c.queries).ValidatorUnbondingDelegations(ctx,
				&stakingtypes.QueryValidatorUnbondingDelegationsRequest{
					ValidatorAddr: v.OperatorAddress, Pagination: p,
				})
			for _, d := range r.GetUnbondingResponses() {
				for _, e := range d.Entries {
					sum = sum.Add(e.Balance)
				}
			}
			return r.GetPagination(), err
		})
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// undistributed is the community pool, and what validators and delegators have earned and not withdrawn. It is counted
// in fractions, which add up to whole coins.
func (c counter) undistributed(ctx context.Context) (sdkmath.Int, error) {
	all, err := c.distribution(ctx)
	return all.AmountOf(adapter.Denom).TruncateInt(), err
}

// distribution is undistributed in all coins.
func (c counter) distribution(ctx context.Context) (sdk.DecCoins, error) {
	q := distrtypes.NewQueryClient(c.queries)
	pool, err := q.CommunityPool(ctx, &distrtypes.QueryCommunityPoolRequest{})
	if err != nil {
		return nil, query.Known(err)
	}
	all, err := c.validators(ctx)
	if err != nil {
		return nil, err
	}
	sum := pool.Pool
	for _, v := range all {
		r, err := q.ValidatorOutstandingRewards(ctx,
			&distrtypes.QueryValidatorOutstandingRewardsRequest{ValidatorAddress: v.OperatorAddress})
		if err != nil {
			return nil, query.Known(err)
		}
		sum = sum.Add(r.Rewards.Rewards...)
	}
	return sum, nil
}

// deposits of the proposals that are not decided.
func (c counter) deposits(ctx context.Context) (sum sdkmath.Int, err error) {
	sum = sdkmath.ZeroInt()
	for _, status := range []govv1.ProposalStatus{govv1.StatusDepositPeriod, govv1.StatusVotingPeriod} {
		err := query.Pages(func(p *sdkquery.PageRequest) (*sdkquery.PageResponse, error) {
			r, err := govv1.NewQueryClient(c.queries).Proposals(ctx,
				&govv1.QueryProposalsRequest{ProposalStatus: status, Pagination: p})
			for _, proposal := range r.GetProposals() {
				sum = sum.Add(sdk.Coins(proposal.TotalDeposit).AmountOf(adapter.Denom))
			}
			return r.GetPagination(), err
		})
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// supply compares the sum of all accounts with the supply that the bank states.
func (c counter) supply(ctx context.Context) (ModuleBalance, error) {
	b := ModuleBalance{Module: Supply}
	supply, sum, err := c.issued(ctx, adapter.Denom)
	if err != nil {
		return b, err
	}
	var errs [2]error
	b.Owed, errs[0] = amount(supply)
	b.Held, errs[1] = amount(sum)
	return b, errors.Join(errs[:]...)
}
