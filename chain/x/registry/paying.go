package registry

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
)

// Paying is a keeper that pays participants: their payees, or the stake of one that earns it.
type Paying struct{ *Keeper }

// Pay pays an account for work, from the account of a module.
func (k Paying) Pay(ctx context.Context, module, id string, c coin.Coin, amount uint64) error {
	old, _, err := surroundings(k).Find(ctx, id)
	if err != nil {
		return err
	}
	if !old.Earning || !c.Own() {
		to, err := k.Payee(ctx, id)
		if err != nil {
			return err
		}
		return k.bank.SendCoinsFromModuleToAccount(ctx, module, to, adapter.CoinsOf(c, amount))
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	p, err := earning.Paid(old, amount, params)
	if err != nil {
		return err
	}
	return errors.Join(k.bank.SendCoinsFromModuleToModule(ctx, module, Name, adapter.Coins(amount)),
		putEarner(ctx, k.Keeper, p))
}

// Payee is the account that is paid in place of an account: its payee, if it is a participant that names one. A payee
// that became the account of a module is passed over, so that no settlement fails.
func (k Paying) Payee(ctx context.Context, id string) (sdk.AccAddress, error) {
	own, err := sdk.AccAddressFromBech32(id)
	if err != nil {
		return nil, err
	}
	p, known, err := surroundings(k).Find(ctx, id)
	if err != nil || !known {
		return own, err
	}
	to, err := sdk.AccAddressFromBech32(registry.Pays(p, sdk.UnwrapSDKContext(ctx).BlockHeight()))
	if err != nil || k.bank.BlockedAddr(to) {
		return own, nil
	}
	return to, nil
}

// SetPayee implements registrypb.MsgServer.
func (k messages) SetPayee(ctx context.Context, m *registrypb.MsgSetPayee) (*registrypb.MsgSetPayeeResponse, error) {
	p, err := k.Get(ctx, m.Participant)
	if err == nil && p.Machine.Owner != "" {
		err = fmt.Errorf("%w: the owner of a machine is paid", registry.ErrPayee)
	} else if err == nil && m.Payee != "" {
		err = k.payable(m.Payee)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	now, from := sdk.UnwrapSDKContext(ctx), int64(0)
	if p.Payee, from, err = p.Payee.Set(p.ID, m.Sender, m.Payee, params.UnstakeBlocks, now.BlockHeight()); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &registrypb.MsgSetPayeeResponse{Height: from}, k.set(ctx, p)
}

// payable returns why an address cannot be named as a payee: it is none, or the account of a module, which cannot be
// paid.
func (k messages) payable(payee string) error {
	to, err := sdk.AccAddressFromBech32(payee)
	switch {
	case err == nil && k.bank.BlockedAddr(to):
		err = errors.New("it is the account of a module")
	case err == nil && to.String() != payee: // it is compared as a text
		err = fmt.Errorf("it is written %s", to)
	}
	if err != nil {
		return fmt.Errorf("%w: %q cannot be paid: %w", registry.ErrPayee, payee, err)
	}
	return nil
}

// name sets the payee of a registration: the first names one, and later ones change nothing.
func (k messages) name(payee string, old registry.Participant, known bool, p registry.Participant,
	height int64) (registry.Participant, error) {
	switch {
	case known && payee != "" && payee != registry.Pays(old, height):
		return p, fmt.Errorf("%w: it was named, and SetPayee changes it", registry.ErrPayee)
	case known || payee == "":
		return p, nil
	}
	p.Payee.ID = payee
	return p, k.payable(payee)
}

// surroundings are the reads of the list of earners.
type surroundings struct{ *Keeper }

// Find implements earners.Surroundings.
func (k surroundings) Find(ctx context.Context, id string) (registry.Participant, bool, error) {
	p, err := k.Get(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return registry.Participant{}, false, nil
	}
	return p, err == nil, err
}

// At implements earners.Surroundings.
func (k surroundings) At(ctx context.Context, height int64) (canon.Digest, error) {
	return k.beacon.At(ctx, height)
}

// Part implements earners.Surroundings.
func (k surroundings) Part(ctx context.Context, id string) (bool, error) { return k.runs.Part(ctx, id) }

// arrivalGas is the gas of a registration without a stake, in addition to that of its writes, for reading the workers
// that earn theirs.
const arrivalGas = 100_000

// earns checks a registration of a worker that earns its stake: its first one in a place, with a proof, or a later one.
func (k messages) earns(ctx context.Context, m *registrypb.MsgRegister, old, p registry.Participant,
	params registry.Params) (err error) {
	if m.Earns {
		return k.arrive(ctx, m)
	}
	part := false
	if len(p.Roles) == 0 && earning.Placed(old) {
		if part, err = k.runs.Part(ctx, p.ID); err != nil {
			return err
		}
	}
	return ErrorTable.Wrap(earning.Renew(old, p, part, params))
}

// arrive admits a registration without a stake, in the place of an idle worker if all are taken.
func (k messages) arrive(ctx context.Context, m *registrypb.MsgRegister) error {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(arrivalGas, "registration without a stake")
	idle, err := k.Earners.Check(ctx, m)
	if err != nil || idle == "" {
		return ErrorTable.Wrap(err)
	}
	out, err := k.Get(ctx, idle)
	if err != nil {
		return err
	}
	return k.set(ctx, earning.Rest(out))
}
