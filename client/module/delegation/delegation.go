// Package delegation sends the messages and the queries of x/delegation in the types of protocol/delegation.
package delegation

import (
	"context"

	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	"github.com/starling-network/starling/client/module/submit"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/delegation"
)

// Client sends the messages and the queries of x/delegation: stake that accounts put behind the work of others.
type Client struct{ submit.Account }

// Terms opens the pool of the account, or changes its terms. It returns the height from which the commission, in
// millionths, holds.
func (c Client) Terms(ctx context.Context, commission uint32, closed bool) (int64, error) {
	var r delegationpb.MsgSetTermsResponse
	err := submit.Ask(ctx, c.Account, &delegationpb.MsgSetTerms{Sender: c.Address(), CommissionPpm: commission,
		Closed: closed}, &r)
	return r.Height, err
}

// Delegate locks uzen for the pool of a participant, and returns the height at which they become shares.
func (c Client) Delegate(ctx context.Context, participant string, uzen uint64) (int64, error) {
	var r delegationpb.MsgDelegateResponse
	err := submit.Ask(ctx, c.Account, &delegationpb.MsgDelegate{Sender: c.Address(), Participant: participant,
		Amount: uzen}, &r)
	return r.Height, err
}

// Undelegate asks for uzen back; 0: all. It returns the part that is paid out at once, and the height at which the rest
// is; 0: there is none.
func (c Client) Undelegate(ctx context.Context, participant string, uzen uint64) (uint64, int64, error) {
	var r delegationpb.MsgUndelegateResponse
	err := submit.Ask(ctx, c.Account, &delegationpb.MsgUndelegate{Sender: c.Address(), Participant: participant,
		Amount: uzen}, &r)
	return r.Returned, r.Height, err
}

// Claim claims what the account has earned in the pool of a participant, in all coins.
func (c Client) Claim(ctx context.Context, participant string) error {
	return submit.Send(ctx, c.Account, &delegationpb.MsgClaim{Sender: c.Address(), Participant: participant})
}

// Pools are all pools, in order of participant.
func (c Client) Pools(ctx context.Context) ([]delegation.View, error) {
	var all []delegation.View
	for next := (&delegationpb.QueryPoolsRequest{}); ; {
		r, err := delegationpb.NewQueryClient(c.Account).Pools(ctx, next)
		page, err := query.List[delegation.View](r.GetPools(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.After = page[len(page)-1].ID
	}
}

// Pool is the pool of a participant; ErrNotFound if it has none.
func (c Client) Pool(ctx context.Context, participant string) (delegation.View, error) {
	r, err := delegationpb.NewQueryClient(c.Account).Pool(ctx, &delegationpb.QueryPoolRequest{Participant: participant})
	return query.One[delegation.View](r.GetPool(), err)
}

// Delegators are the delegations in the pool of a participant, in order of delegator; ErrNotFound if it has none.
func (c Client) Delegators(ctx context.Context, participant string) ([]delegation.Part, error) {
	var all []delegation.Part
	for next := (&delegationpb.QueryDelegatorsRequest{Participant: participant}); ; {
		r, err := delegationpb.NewQueryClient(c.Account).Delegators(ctx, next)
		page, err := query.List[delegation.Part](r.GetDelegations(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.After = page[len(page)-1].Delegator
	}
}

// Delegations are those of an account, in order of participant.
func (c Client) Delegations(ctx context.Context, delegator string) ([]delegation.Part, error) {
	var all []delegation.Part
	for next := (&delegationpb.QueryDelegationsRequest{Delegator: delegator}); ; {
		r, err := delegationpb.NewQueryClient(c.Account).Delegations(ctx, next)
		page, err := query.List[delegation.Part](r.GetDelegations(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.After = page[len(page)-1].Pool
	}
}
