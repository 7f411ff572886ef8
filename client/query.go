package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
)

// Run is the state of the run of a job; ErrNotFound before its order is matched.
func (c *Client) Run(ctx context.Context, job string) (run.State, error) {
	r, err := trainingpb.NewQueryClient(c.conn).Run(ctx, &trainingpb.QueryRunRequest{Job: job})
	return one[run.State](r.GetState(), err)
}

// Lineage is the attested checkpoint of a round, from 1; ErrNotFound before it is attested.
func (c *Client) Lineage(ctx context.Context, job string, round uint32) (run.Entry, error) {
	r, err := trainingpb.NewQueryClient(c.conn).Lineage(ctx,
		&trainingpb.QueryLineageRequest{Job: job, From: round, Limit: 1})
	entries, err := list[run.Entry](r.GetEntries(), err)
	switch {
	case err != nil:
		return run.Entry{}, err
	case len(entries) == 0 || entries[0].Attestation.Checkpoint.Round != round:
		return run.Entry{}, fmt.Errorf("%w: checkpoint %d of %s", ErrNotFound, round, job)
	}
	return entries[0], nil
}

// Receipts are all receipts of a job, in the order in which they were issued.
func (c *Client) Receipts(ctx context.Context, job string) ([]reward.Receipt, error) {
	return c.ReceiptsFrom(ctx, job, 0)
}

// ReceiptsFrom are the receipts of a job from a sequence number on.
func (c *Client) ReceiptsFrom(ctx context.Context, job string, from uint64) ([]reward.Receipt, error) {
	var all []reward.Receipt
	for {
		r, err := trainingpb.NewQueryClient(c.conn).Receipts(ctx,
			&trainingpb.QueryReceiptsRequest{Job: job, From: from + uint64(len(all))})
		page, err := list[reward.Receipt](r.GetReceipts(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
}

// Disputes are the disputes of a job, open and decided, in order of round, unit and opening.
func (c *Client) Disputes(ctx context.Context, job string) ([]dispute.Dispute, error) {
	var all []dispute.Dispute
	for next := (&trainingpb.QueryDisputesRequest{Job: job}); ; {
		r, err := trainingpb.NewQueryClient(c.conn).Disputes(ctx, next)
		page, err := list[dispute.Dispute](r.GetGames(), err)
		if all = append(all, page...); err != nil || !r.More {
			return all, err
		}
		next.Round, next.Unit, next.Number = r.Round, r.Unit, r.Number
	}
}

// Seals are the seals of the audits of a round that passed.
func (c *Client) Seals(ctx context.Context, job string, round uint32) ([]trainingpb.Seal, error) {
	r, err := trainingpb.NewQueryClient(c.conn).Seals(ctx, &trainingpb.QuerySealsRequest{Job: job, Round: round})
	return r.GetSeals(), known(err)
}

// Runs are the identifiers of the jobs that have a run, in order: all of them, or those that are not over.
func (c *Client) Runs(ctx context.Context, active bool) ([]string, error) {
	var all []string
	for next := (&trainingpb.QueryRunsRequest{Active: active}); ; next.After = all[len(all)-1] {
		r, err := trainingpb.NewQueryClient(c.conn).Runs(ctx, next)
		if err != nil || len(r.Jobs) == 0 {
			return all, known(err)
		}
		all = append(all, r.Jobs...)
	}
}

// Participants are all participants of the network, in order of address.
func (c *Client) Participants(ctx context.Context) ([]registry.Participant, error) {
	var all []registry.Participant
	after := ""
	for {
		r, err := registrypb.NewQueryClient(c.conn).Participants(ctx, &registrypb.QueryParticipantsRequest{After: after})
		page, err := list[registry.Participant](r.GetParticipants(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].ID
	}
}

// Participant is one participant, or ErrNotFound.
func (c *Client) Participant(ctx context.Context, id string) (registry.Participant, error) {
	r, err := registrypb.NewQueryClient(c.conn).Participant(ctx, &registrypb.QueryParticipantRequest{Id: id})
	return one[registry.Participant](r.GetParticipant(), err)
}

// Offers are all offers, in order of role and address.
func (c *Client) Offers(ctx context.Context) ([]market.Offer, error) {
	var all []market.Offer
	for next := (&marketpb.QueryOffersRequest{}); ; {
		r, err := marketpb.NewQueryClient(c.conn).Offers(ctx, next)
		page, err := list[market.Offer](r.GetOffers(), err)
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
func (c *Client) Orders(ctx context.Context) ([]OrderStatus, error) {
	var all []OrderStatus
	for next := (&marketpb.QueryOrdersRequest{}); ; next.After = all[len(all)-1].ID {
		r, err := marketpb.NewQueryClient(c.conn).Orders(ctx, next)
		if err != nil || len(r.Orders) == 0 {
			return all, known(err)
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
func (c *Client) PlacedOrder(ctx context.Context, job string) (OrderStatus, error) {
	r, err := marketpb.NewQueryClient(c.conn).Order(ctx, &marketpb.QueryOrderRequest{Job: job})
	if err != nil {
		return OrderStatus{}, known(err)
	}
	return placed(r.Order)
}

func placed(o marketpb.PlacedOrder) (OrderStatus, error) {
	order, err := one[market.Order](o.Order, nil)
	return OrderStatus{Order: order, Status: o.Status, Why: o.Why}, err
}

// Escrow is the budget of a job and what became of it; ErrNotFound if nobody ordered the job.
func (c *Client) Escrow(ctx context.Context, job string) (market.Escrow, error) {
	r, err := marketpb.NewQueryClient(c.conn).Escrow(ctx, &marketpb.QueryEscrowRequest{Job: job})
	return one[market.Escrow](r.GetEscrow(), err)
}

// Beacon is the beacon of a block; of the latest for height 0.
func (c *Client) Beacon(ctx context.Context, height int64) (canon.Digest, error) {
	r, err := beaconpb.NewQueryClient(c.conn).Beacon(ctx, &beaconpb.QueryBeaconRequest{Height: height})
	if err != nil {
		return canon.Digest{}, known(err)
	}
	if len(r.Value) != len(canon.Digest{}) {
		return canon.Digest{}, fmt.Errorf("client: a beacon of %d bytes", len(r.Value))
	}
	return canon.Digest(r.Value), nil
}

// Balance of an account, in uzen.
func (c *Client) Balance(ctx context.Context, address string) (uint64, error) {
	r, err := banktypes.NewQueryClient(c.conn).Balance(ctx,
		&banktypes.QueryBalanceRequest{Address: address, Denom: adapter.Denom})
	if err != nil {
		return 0, known(err)
	}
	if !r.Balance.Amount.IsUint64() {
		return 0, fmt.Errorf("client: a balance of %s", r.Balance.Amount)
	}
	return r.Balance.Amount.Uint64(), nil
}

// Sequence is the number of the account, and how many transactions it has made.
func (c *Client) Sequence(ctx context.Context) (number, sequence uint64, err error) {
	a, err := c.info(ctx, c.Address())
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %s", ErrNoAccount, c.Address())
	}
	return a.GetAccountNumber(), a.GetSequence(), err
}

// info is what the chain says of an account, or ErrNotFound.
func (c *Client) info(ctx context.Context, address string) (*authtypes.BaseAccount, error) {
	r, err := authtypes.NewQueryClient(c.conn).AccountInfo(ctx, &authtypes.QueryAccountInfoRequest{Address: address})
	if err != nil {
		return &authtypes.BaseAccount{}, known(err)
	}
	return r.Info, nil
}

// one decodes the value of a query.
func one[T any](b []byte, err error) (v T, _ error) {
	if err != nil {
		return v, known(err)
	}
	err = canon.Unmarshal(b, &v)
	return v, err
}

// list decodes the values of a query.
func list[T any](values [][]byte, err error) ([]T, error) {
	if err != nil {
		return nil, known(err)
	}
	all := make([]T, len(values))
	for i, b := range values {
		if err := canon.Unmarshal(b, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// known gives an error of a query its sentinel.
func known(err error) error {
	if status.Code(err) == codes.NotFound {
		text := status.Convert(err).Message()
		if _, said, wrapped := strings.Cut(text, " desc = "); wrapped { // the error of the query, in that of ABCI
			text = strings.TrimSuffix(said, ": key not found")
		}
		return fmt.Errorf("%w: %s", ErrNotFound, text)
	}
	return err
}
