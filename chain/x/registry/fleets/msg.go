package fleets

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// Messages answers the messages about fleets.
type Messages struct {
	List List
	Wrap func(error) error // gives an error its code
}

// Invite implements registrypb.MsgServer.
func (s Messages) Invite(ctx context.Context, m *registrypb.MsgInvite) (*registrypb.MsgInviteResponse, error) {
	r, err := s.List.invite(ctx, m)
	return r, s.Wrap(err)
}

// Enrol implements registrypb.MsgServer.
func (s Messages) Enrol(ctx context.Context, m *registrypb.MsgEnrol) (*registrypb.MsgEnrolResponse, error) {
	r, err := s.List.enrol(ctx, m)
	return r, s.Wrap(err)
}

// ChangeMachine implements registrypb.MsgServer.
func (s Messages) ChangeMachine(ctx context.Context,
	m *registrypb.MsgChangeMachine) (*registrypb.MsgChangeMachineResponse, error) {
	r, err := s.List.change(ctx, m)
	return r, s.Wrap(err)
}

// Revoke implements registrypb.MsgServer.
func (s Messages) Revoke(ctx context.Context, m *registrypb.MsgRevoke) (*registrypb.MsgRevokeResponse, error) {
	r, err := s.List.revoke(ctx, m)
	return r, s.Wrap(err)
}

func (l List) invite(ctx context.Context, m *registrypb.MsgInvite) (*registrypb.MsgInviteResponse, error) {
	if len(m.Key) != fleet.KeySize {
		return nil, fmt.Errorf("%w: a key of %d bytes, wanted %d", fleet.ErrInvitation, len(m.Key), fleet.KeySize)
	}
	params, err := l.around.Params(ctx)
	if err != nil {
		return nil, err
	}
	owner, _, err := l.around.Find(ctx, m.Owner)
	if err != nil {
		return nil, err
	}
	if owner.Machine.Owner != "" {
		return nil, fmt.Errorf("%w: it invites no other", fleet.ErrMachine)
	}
	id := named(m.Owner, m.Key)
	if _, known, err := l.around.Find(ctx, id); err != nil || known {
		return nil, errors.Join(err, fmt.Errorf("%w: there is one with this key", fleet.ErrInvitation))
	}
	p, err := fleet.Invite(id, m.Owner, m.Stake, m.DailyFees, m.Until, params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return nil, err
	}
	return &registrypb.MsgInviteResponse{Invitation: id}, errors.Join(l.around.Lock(ctx, m.Owner, m.Stake),
		l.owned.Set(ctx, collections.Join(m.Owner, id)), l.around.Replace(ctx, registry.Participant{}, p))
}

func (l List) enrol(ctx context.Context, m *registrypb.MsgEnrol) (*registrypb.MsgEnrolResponse, error) {
	invitation, err := l.Early(ctx, m)
	if err != nil {
		return nil, err
	}
	owner := m.Owner
	p := fleet.Enrol(invitation, m.Sender, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return &registrypb.MsgEnrolResponse{Owner: owner}, errors.Join(
		l.around.Forget(ctx, invitation.ID), l.owned.Remove(ctx, collections.Join(owner, invitation.ID)),
		l.around.Replace(ctx, registry.Participant{}, p), l.owned.Set(ctx, collections.Join(owner, p.ID)),
		l.pay(ctx, p, p.Machine.Fees, Fees.Allow))
}

func (l List) change(ctx context.Context,
	m *registrypb.MsgChangeMachine) (*registrypb.MsgChangeMachineResponse, error) {
	old, err := l.of(ctx, m.Owner, m.Machine)
	if err != nil {
		return nil, err
	}
	p, err := fleet.Change(old, m.Drains, m.Stake)
	if err != nil {
		return nil, err
	}
	return &registrypb.MsgChangeMachineResponse{}, errors.Join(l.around.Lock(ctx, m.Owner, m.Stake),
		l.around.Replace(ctx, old, p))
}

// revoke is Revoke. A machine leaves its runs: units that it has not finished go to others. An invitation that was not
// used ends, and its stake returns at once. If an account has begun to use it, which had transactions without a fee for
// its stake, the stake leaves as that of a machine does.
func (l List) revoke(ctx context.Context, m *registrypb.MsgRevoke) (*registrypb.MsgRevokeResponse, error) {
	old, err := l.of(ctx, m.Owner, m.Machine)
	if err != nil {
		return nil, err
	}
	if old.Machine.Until > 0 && old.Machine.Claimed == "" {
		return &registrypb.MsgRevokeResponse{}, errors.Join(l.around.Forget(ctx, old.ID),
			l.owned.Remove(ctx, collections.Join(m.Owner, old.ID)), l.around.Return(ctx, m.Owner, old.Stake))
	}
	params, err := l.around.Params(ctx)
	if err != nil {
		return nil, err
	}
	p := fleet.Revoke(old, params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if p.Machine.Until > 0 {
		return &registrypb.MsgRevokeResponse{Height: p.LeavesAt}, l.around.Replace(ctx, old, p)
	}
	return &registrypb.MsgRevokeResponse{Height: p.LeavesAt}, errors.Join(l.around.Replace(ctx, old, p),
		l.pay(ctx, p, p.Machine.Fees, Fees.Limit), l.around.Withdraw(ctx, p.ID))
}
