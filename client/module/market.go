package module

import (
	"context"
	"fmt"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Market sends the messages and the queries of x/market: offers, orders and the budgets of jobs.
type Market struct{ account Account }

// Offer offers work in a role at a price in uzen per 10^15 floating-point operations, in as many runs at a time as
// there are slots; none withdraws the offer.
func (m Market) Offer(ctx context.Context, role crew.Role, price uint64, slots uint32) error {
	return m.OfferIn(ctx, marketpb.MsgOffer{Role: registrypb.Role(role), Price: price, Slots: slots})
}

// OfferHourly is Offer at a price in uzen for an hour of the account's machine, at its measured rate.
func (m Market) OfferHourly(ctx context.Context, role crew.Role, hourly uint64, slots uint32) error {
	return m.OfferIn(ctx, marketpb.MsgOffer{Role: registrypb.Role(role), Hourly: hourly, Slots: slots})
}

// OfferPool offers the work of the workers that named the account as their pool, each in as many runs as slots.
func (m Market) OfferPool(ctx context.Context, price uint64, slots uint32) error {
	return m.OfferIn(ctx, marketpb.MsgOffer{Role: registrypb.Role(crew.Worker), Price: price, Slots: slots, Pool: true})
}

// Make makes an offer; its account is that of the client.
func (m Market) Make(ctx context.Context, o market.Offer) error {
	return send(ctx, m.account, marketpb.FromOffer(m.account.Address(), o))
}

// OfferIn offers work at prices in several coins; Sender is the account.
func (m Market) OfferIn(ctx context.Context, offer marketpb.MsgOffer) error {
	offer.Sender = m.account.Address()
	return send(ctx, m.account, &offer)
}

// Order places an order of the work that an opening shows (referee.Opening), and locks its budget. Consumer and At are
// the account and the block.
func (m Market) Order(ctx context.Context, o market.Order, opening []byte) error {
	return send(ctx, m.account, &marketpb.MsgOrder{
		Sender: m.account.Address(), Terms: runpb.FromTerms(o.Terms), Budget: o.Budget, PriceCap: o.PriceCap,
		WorkersMin: o.Workers.Min, WorkersTarget: o.Workers.Target, WorkersMax: o.Workers.Max, Denom: o.Coin.Denom,
		Verifiers: o.Verifiers, Deadline: o.Deadline, Conditions: marketpb.FromConditions(o.Conditions),
		OnExceed: marketpb.OnExceed(o.OnExceed), SharesPpm: o.SharesPPM, Opening: opening, Generators: o.Generators,
	})
}

// CancelOrder takes back an order: at once if it is not matched; else its run ends with the rounds that are under way.
func (m Market) CancelOrder(ctx context.Context, job string) error {
	return send(ctx, m.account, &marketpb.MsgCancelOrder{Sender: m.account.Address(), Job: job})
}

// PauseJob lets no further round of a run begin until ResumeJob.
func (m Market) PauseJob(ctx context.Context, job string) error {
	return send(ctx, m.account, &marketpb.MsgPauseJob{Sender: m.account.Address(), Job: job})
}

// ResumeJob ends a pause.
func (m Market) ResumeJob(ctx context.Context, job string) error {
	return send(ctx, m.account, &marketpb.MsgResumeJob{Sender: m.account.Address(), Job: job})
}

// FeedJob names the data of the round of a run that the account leads: their root, and the CID of their bytes.
func (m Market) FeedJob(ctx context.Context, job string, round uint32, root canon.Digest, cid string) error {
	return send(ctx, m.account, &marketpb.MsgFeedJob{Sender: m.account.Address(), Job: job, Round: round, Root: root[:],
		CID: cid})
}

// TopUpJob adds to the budget of a job, in grains of its coin.
func (m Market) TopUpJob(ctx context.Context, job string, c coin.Coin, amount uint64) error {
	return send(ctx, m.account, &marketpb.MsgTopUpJob{Sender: m.account.Address(), Job: job, Amount: amount,
		Denom: c.Denom})
}

// Coins are the coins in which orders may be placed, in addition to the network's own, in order of denomination.
func (m Market) Coins(ctx context.Context) ([]coin.Registered, error) {
	r, err := marketpb.NewQueryClient(m.account).Coins(ctx, &marketpb.QueryCoinsRequest{})
	return query.List[coin.Registered](r.GetCoins(), err)
}

// ByDenom are the coins in which orders may be placed by their denominations, the network's own with "".
func (m Market) ByDenom(ctx context.Context) (map[string]coin.Registered, error) {
	all, err := m.Coins(ctx)
	coins := map[string]coin.Registered{"": coin.Zen()}
	for _, c := range all {
		coins[c.Denom] = c
	}
	return coins, err
}

// Coin is the coin with a symbol or a denomination; "" and zen are the network's own. The error is query.ErrNotFound if
// no such coin is registered.
func (m Market) Coin(ctx context.Context, name string) (coin.Registered, error) {
	if name == "" || strings.EqualFold(name, coin.Zen().Name()) {
		return coin.Zen(), nil
	}
	all, err := m.Coins(ctx)
	for _, c := range all {
		if c.Denom == name || strings.EqualFold(c.Symbol, name) {
			return c, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: a coin %q; the network takes orders in %s", query.ErrNotFound, name, names(all))
	}
	return coin.Registered{}, err
}

func names(coins []coin.Registered) string {
	all := coin.Zen().Name()
	for _, c := range coins {
		all += ", " + c.Name()
	}
	return all
}

// Offers are all offers, in order of role and address.
func (m Market) Offers(ctx context.Context) ([]market.Offer, error) {
	var all []market.Offer
	for next := (&marketpb.QueryOffersRequest{}); ; {
		r, err := marketpb.NewQueryClient(m.account).Offers(ctx, next)
		page, err := query.List[market.Offer](r.GetOffers(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.Role, next.After = uint32(page[len(page)-1].Role), page[len(page)-1].ID
	}
}

// OrderStatus is an order and what became of it.
type OrderStatus struct {
	market.Order
	Status string // open | running | paused | ending | ended
	Why    string // an open order waits, a run has no budget for another round, or an order ended without a run
}

// Orders are the open orders, in order of job.
func (m Market) Orders(ctx context.Context) ([]OrderStatus, error) {
	var all []OrderStatus
	for next := (&marketpb.QueryOrdersRequest{}); ; next.After = all[len(all)-1].ID {
		r, err := marketpb.NewQueryClient(m.account).Orders(ctx, next)
		if err != nil || len(r.Orders) == 0 {
			return all, query.Known(err)
		}
		for _, o := range r.Orders {
			p, err := placed(o)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
}

// PlacedOrder is the order of a job, open or not; or ErrNotFound.
func (m Market) PlacedOrder(ctx context.Context, job string) (OrderStatus, error) {
	r, err := marketpb.NewQueryClient(m.account).Order(ctx, &marketpb.QueryOrderRequest{Job: job})
	if err != nil {
		return OrderStatus{}, query.Known(err)
	}
	return placed(r.Order)
}

func placed(o marketpb.PlacedOrder) (OrderStatus, error) {
	order, err := query.One[market.Order](o.Order, nil)
	return OrderStatus{Order: order, Status: o.Status, Why: o.Why}, err
}

// Escrow is the budget of a job and its use; ErrNotFound if the job was never ordered.
func (m Market) Escrow(ctx context.Context, job string) (market.Escrow, error) {
	r, err := marketpb.NewQueryClient(m.account).Escrow(ctx, &marketpb.QueryEscrowRequest{Job: job})
	return query.One[market.Escrow](r.GetEscrow(), err)
}

// Lots are the offers as they are matched: those of pools one for each member, with the slots that are left.
func (m Market) Lots(ctx context.Context) ([]market.Listing, error) {
	r, err := marketpb.NewQueryClient(m.account).Lots(ctx, &marketpb.QueryLotsRequest{})
	return query.List[market.Listing](r.GetLots(), err)
}

// Estimate is the expected outcome of an order now.
func (m Market) Estimate(ctx context.Context, o market.Order) (market.Estimate, error) {
	r, err := marketpb.NewQueryClient(m.account).Estimate(ctx, &marketpb.QueryEstimateRequest{Order: canon.MustMarshal(o)})
	return query.One[market.Estimate](r.GetEstimate(), err)
}

// MarketParams are the parameters of the market in force.
func (m Market) Params(ctx context.Context) (market.Params, error) {
	r, err := marketpb.NewQueryClient(m.account).Params(ctx, &marketpb.QueryParamsRequest{})
	return query.One[market.Params](r.GetParams(), err)
}
