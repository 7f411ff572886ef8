package hosting

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/hosting"
)

// messages implements hostingpb.MsgServer over a keeper.
type messages struct{ *Keeper }

// Register implements hostingpb.MsgServer.
func (k messages) Register(ctx context.Context, m *hostingpb.MsgRegister) (*hostingpb.MsgRegisterResponse, error) {
	to := hosting.Model{Owner: m.Sender, Name: m.Name, Job: m.Job, PartPPM: m.PartPpm, Licence: m.Licence,
		Base: m.Base}
	var err, err2 error
	to.Files, err = runpb.Digest(m.Files)
	to.Weights, err2 = runpb.Digest(m.Weights)
	if err := errors.Join(err, err2); err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", hosting.ErrModel, err))
	}
	if err := to.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if to.Base != 0 {
		base, err := k.Model(ctx, to.Base)
		if err == nil {
			err = to.Over(base)
		}
		if err != nil {
			return nil, ErrorTable.Wrap(err)
		}
	}
	if to.ID, err = k.number(ctx, m.Sender, "model", to.Files[:]); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgRegisterResponse{Model: to.ID}, k.models.Set(ctx, to.ID, to)
}

// Host implements hostingpb.MsgServer.
func (k messages) Host(ctx context.Context, m *hostingpb.MsgHost) (*hostingpb.MsgHostResponse, error) {
	to := hosting.Place{Model: m.Model, Provider: m.Sender, URL: m.Url, Bond: m.Bond,
		Prices: hosting.Prices{Denom: m.Denom, Input: m.Input, Output: m.Output}}
	old, err := k.Place(ctx, m.Model, m.Sender)
	if err == nil {
		p, more, err := old.Update(to)
		if err == nil {
			err = k.custody.Lock(ctx, m.Sender, "", more)
		}
		if err != nil {
			return nil, ErrorTable.Wrap(err)
		}
		return &hostingpb.MsgHostResponse{}, k.place(ctx, old, p)
	}
	if !errors.Is(err, ErrNone) {
		return nil, err
	}
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(recordGas, "record of hosting")
	rules, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	if err := to.Offered(rules); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if _, err := k.Model(ctx, m.Model); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if _, err := k.custody.Coins.Open(ctx, m.Denom); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if err := k.custody.Lock(ctx, m.Sender, "", to.Bond); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgHostResponse{}, k.place(ctx, hosting.Place{}, to)
}

// Leave implements hostingpb.MsgServer.
func (k messages) Leave(ctx context.Context, m *hostingpb.MsgLeave) (*hostingpb.MsgLeaveResponse, error) {
	old, err := k.Place(ctx, m.Model, m.Sender)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	rules, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	p, err := old.Leave(rules, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgLeaveResponse{}, k.place(ctx, old, p)
}

// Open implements hostingpb.MsgServer.
func (k messages) Open(ctx context.Context, m *hostingpb.MsgOpen) (*hostingpb.MsgOpenResponse, error) {
	old, err := k.Place(ctx, m.Model, m.Provider)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if _, err := k.custody.Coins.Open(ctx, old.Prices.Denom); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if m.Denom != old.Prices.Denom {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: the prices are in %q, not in %q", hosting.ErrChannel, old.Prices.Denom,
			m.Denom))
	}
	if len(m.Key) != ed25519.PublicKeySize {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: a key of %d bytes", hosting.ErrChannel, len(m.Key)))
	}
	id, err := k.number(ctx, m.Sender, "channel", m.Key)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	p, c, err := old.OpenChannel(id, m.Sender, m.Key, m.Amount)
	if err == nil {
		err = k.custody.Lock(ctx, m.Sender, c.Denom, m.Amount)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgOpenResponse{Channel: id}, errors.Join(k.place(ctx, old, p), k.channels.Set(ctx, id, c),
		k.payers.Set(ctx, collections.Join(c.Payer, id)), k.providers.Set(ctx, collections.Join(c.Provider, id)))
}

// Fund implements hostingpb.MsgServer.
func (k messages) Fund(ctx context.Context, m *hostingpb.MsgFund) (*hostingpb.MsgFundResponse, error) {
	c, _, err := k.channel(ctx, m.Channel)
	if err == nil {
		_, err = k.custody.Coins.Open(ctx, c.Denom)
	}
	if err == nil {
		c, err = c.Fund(m.Sender, m.Amount)
	}
	if err == nil {
		err = k.custody.Lock(ctx, m.Sender, c.Denom, m.Amount)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgFundResponse{}, k.channels.Set(ctx, c.ID, c)
}

// Redeem implements hostingpb.MsgServer.
func (k messages) Redeem(ctx context.Context, m *hostingpb.MsgRedeem) (*hostingpb.MsgRedeemResponse, error) {
	now := sdk.UnwrapSDKContext(ctx)
	now.GasMeter().ConsumeGas(signatureGas, "voucher")
	c, _, err := k.channel(ctx, m.Channel)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	model, err := k.Model(ctx, c.Model)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	rules, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	c, s, err := c.Redeem(rules, model, m.Sender, now.ChainID(), hosting.Voucher{Chain: m.Chain, Channel: m.Channel,
		Amount: m.Amount, Signature: m.Signature}, m.Total)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgRedeemResponse{Paid: s.Provider, Part: s.Part, Fee: s.Fee}, errors.Join(
		k.channels.Set(ctx, c.ID, c),
		k.pay(ctx, c.Denom, []hosting.Payment{{To: "", Amount: s.Fee}, {To: c.Provider, Amount: s.Provider}}),
		k.share(ctx, model, c.Denom, s.Part))
}

// Close implements hostingpb.MsgServer.
func (k messages) Close(ctx context.Context, m *hostingpb.MsgClose) (*hostingpb.MsgCloseResponse, error) {
	old, p, err := k.channel(ctx, m.Channel)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	rules, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	c, over, err := old.Close(rules, m.Sender, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if over {
		return &hostingpb.MsgCloseResponse{}, k.settle(ctx, c, p)
	}
	return &hostingpb.MsgCloseResponse{}, errors.Join(k.channels.Set(ctx, c.ID, c),
		k.until.Set(ctx, collections.Join(c.Until, c.ID)))
}

// UpdateParams implements hostingpb.MsgServer.
func (k messages) UpdateParams(ctx context.Context,
	m *hostingpb.MsgUpdateParams) (*hostingpb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	p := ToParams(m.Params)
	if err := p.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgUpdateParamsResponse{}, k.params.Set(ctx, p)
}

// ToParams reads parameters as messages have them.
func ToParams(m hostingpb.Params) hosting.Params {
	return hosting.Params{FeePPM: m.FeePpm, Close: m.CloseBlocks, Unbonding: m.UnbondingBlocks, MinBond: m.MinBond}
}

// FromParams writes parameters as messages have them.
func FromParams(p hosting.Params) hostingpb.Params {
	return hostingpb.Params{FeePpm: p.FeePPM, CloseBlocks: p.Close, UnbondingBlocks: p.Unbonding, MinBond: p.MinBond}
}
