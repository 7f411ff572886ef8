// Package backers draws messages of participants that take delegated stake, and of the accounts that delegate to them.
package backers

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/delegation"
	"github.com/starling-network/starling/sim/random/draw"
)

// Next is any message about delegated stake and its sender; "": there is none. The account of the client delegates uzen
// that it has.
func Next(ctx context.Context, d draw.Source, c *client.Client, uzen uint64) (string, sdk.Msg, error) {
	pools, err := c.Delegation.Pools(ctx)
	if err != nil {
		return "", nil, err
	}
	switch n := d.Intn(20); {
	case n < 4 || len(pools) == 0:
		return terms(ctx, d, c)
	case n < 12:
		p := draw.Pick(d, pools)
		if p.Room > 0 && !d.Often(5) { // now and then more than it takes
			uzen = min(uzen, p.Room)
		}
		return c.Address(), &delegationpb.MsgDelegate{Sender: c.Address(), Participant: p.ID, Amount: uzen}, nil
	}
	for _, p := range draw.Mixed(d, pools) {
		parts, err := c.Delegation.Delegators(ctx, p.ID)
		if err != nil || len(parts) == 0 {
			continue
		}
		return change(d, draw.Pick(d, parts))
	}
	return "", nil, nil
}

// terms are those of the pool of a participant, which may have none yet.
func terms(ctx context.Context, d draw.Source, c *client.Client) (string, sdk.Msg, error) {
	all, err := c.Registry.Participants(ctx)
	if err != nil || len(all) == 0 {
		return "", nil, err
	}
	p := draw.Pick(d, all)
	return p.ID, &delegationpb.MsgSetTerms{Sender: p.ID, CommissionPpm: uint32(d.Below(1_050_000)),
		Closed: d.Often(5)}, nil
}

// change claims the pay of a delegator, or takes a part of its stake back, or all.
func change(d draw.Source, p delegation.Part) (string, sdk.Msg, error) {
	if d.Often(50) {
		return p.Delegator, &delegationpb.MsgClaim{Sender: p.Delegator, Participant: p.Pool}, nil
	}
	m := &delegationpb.MsgUndelegate{Sender: p.Delegator, Participant: p.Pool}
	if has := p.Joining + p.Stays; has > 0 && d.Often(60) {
		m.Amount = 1 + d.Below(has)
	}
	return p.Delegator, m, nil
}
