// Package fleets admits machines to the fleets of accounts, lists them and revokes them: the rules of
// protocol/registry/fleet on the chain. The module stores the participants, and holds their stakes.
package fleets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// Surroundings are the participants with their stakes, and the runs in which they have a part.
type Surroundings interface {
	Find(ctx context.Context, id string) (p registry.Participant, known bool, err error)
	Params(ctx context.Context) (registry.Params, error)
	// Replace stores a participant in place of old, with the time at which its stake leaves.
	Replace(ctx context.Context, old, p registry.Participant) error
	Forget(ctx context.Context, id string) error
	Lock(ctx context.Context, account string, stake uint64) error
	Return(ctx context.Context, account string, stake uint64) error
	Rich(ctx context.Context, account sdk.AccAddress) bool // it has more than fleet.MostCoins
	// Withdraw lets an account leave all its runs.
	Withdraw(ctx context.Context, id string) error
}

// Fees are the fees that an account pays for another.
type Fees interface {
	// Allow lets a machine spend an amount in uzen of its owner a day, in place of an earlier amount.
	Allow(ctx context.Context, owner, machine sdk.AccAddress, daily uint64) error
	// Limit lets a machine spend an amount in uzen of its owner, and no more.
	Limit(ctx context.Context, owner, machine sdk.AccAddress, last uint64) error
}

// List is the list of the machines of each owner, and answers the messages about them.
type List struct {
	around Surroundings
	fees   Fees
	owned  collections.KeySet[collections.Pair[string, string]] // owner, machine or invitation
}

// New returns a list inside the store of the module.
func New(b *collections.SchemaBuilder, around Surroundings) List {
	return List{around: around, owned: collections.NewKeySet(b, collections.NewPrefix(27), "fleets",
		collections.PairKeyCodec(collections.StringKey, collections.StringKey))}
}

// Pay sets who pays fees for machines. Without it they pay their own.
func (l *List) Pay(fees Fees) { l.fees = fees }

// named is the name of an invitation: an address of which no account has the key.
func named(owner string, key []byte) string { return sdk.AccAddress(fleet.Place(owner, key)).String() }

// Early returns the invitation of a message, or why it does not admit its sender: it is over, or the sender is no fresh
// account, or the signature is wrong.
func (l List) Early(ctx context.Context, m *registrypb.MsgEnrol) (registry.Participant, error) {
	now := sdk.UnwrapSDKContext(ctx)
	refused := func(format string, args ...any) (registry.Participant, error) {
		return registry.Participant{}, fmt.Errorf("%w: "+format, append([]any{fleet.ErrInvitation}, args...)...)
	}
	if len(m.Key) != fleet.KeySize || len(m.Signature) != fleet.Signature {
		return refused("a key of %d bytes and a signature of %d", len(m.Key), len(m.Signature))
	}
	sender, err := sdk.AccAddressFromBech32(m.Sender)
	if err != nil {
		return refused("%v", err)
	}
	invitation, _, err := l.around.Find(ctx, named(m.Owner, m.Key))
	if err != nil {
		return invitation, err
	}
	if err := fleet.Open(invitation, m.Sender, now.BlockHeight()); err != nil {
		return invitation, err
	}
	_, known, err := l.around.Find(ctx, m.Sender)
	owns, failed := l.Owns(ctx, m.Sender)
	switch {
	case err != nil || failed != nil:
		return invitation, errors.Join(err, failed)
	case known || owns:
		return refused("%s takes part in the network already: a machine enrols with a key of its own", m.Sender)
	case l.around.Rich(ctx, sender):
		return refused("%s has more than %d uzen, which the key of a machine cannot send: enrol with another key", m.Sender,
			uint64(fleet.MostCoins))
	case !(&secp256k1.PubKey{Key: m.Key}).VerifySignature(fleet.Text(now.ChainID(), m.Sender, m.Owner), m.Signature):
		return refused("the signature is not that of its key over this chain, this account and %s", m.Owner)
	}
	return invitation, nil
}

// Owns reports whether an account has machines or invitations.
func (l List) Owns(ctx context.Context, owner string) (owns bool, err error) {
	err = l.owned.Walk(ctx, collections.NewPrefixedPairRange[string, string](owner),
		func(collections.Pair[string, string]) (bool, error) { owns = true; return true, nil })
	return owns, err
}

// Limits of an enrolment without a fee: with it a machine registers, and offers its work in both roles.
const (
	FreeMessages = 4
	SparedGas    = 2_000_000
)

// Claim reserves the invitation for the sender of a message that pays no fee: an invitation then serves no other
// account, also if the transaction fails.
func (l List) Claim(ctx context.Context, m *registrypb.MsgEnrol) error {
	free := adapter.Unmetered(ctx)
	p, err := l.Early(free, m)
	if err != nil || p.Machine.Claimed == m.Sender {
		return err
	}
	old := p
	p.Machine.Claimed = m.Sender
	return l.around.Replace(free, old, p)
}

func (l List) pay(ctx context.Context, p registry.Participant, amount uint64,
	grant func(f Fees, ctx context.Context, owner, machine sdk.AccAddress, amount uint64) error) error {
	if l.fees == nil || amount == 0 {
		return nil
	}
	owner, err := sdk.AccAddressFromBech32(p.Machine.Owner)
	machine, wrong := sdk.AccAddressFromBech32(p.ID)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	return grant(l.fees, ctx, owner, machine, amount)
}

// of returns a machine or an invitation of an owner.
func (l List) of(ctx context.Context, owner, id string) (registry.Participant, error) {
	p, _, err := l.around.Find(ctx, id)
	if err == nil {
		if p.ID == "" {
			p.ID = id
		}
		err = fleet.Owned(p, owner)
	}
	return p, err
}

// Fleet implements registrypb.QueryServer.
func (l List) Fleet(ctx context.Context, m *registrypb.QueryFleetRequest) (*registrypb.QueryFleetResponse, error) {
	var ids []string
	err := l.owned.Walk(ctx, collections.NewPrefixedPairRange[string, string](m.Owner).StartExclusive(m.After),
		func(key collections.Pair[string, string]) (bool, error) {
			ids = append(ids, key.K2())
			return len(ids) == adapter.Most(m.Limit), nil
		})
	r := &registrypb.QueryFleetResponse{}
	for _, id := range slices.Clip(ids) {
		p, _, failed := l.around.Find(ctx, id)
		err = errors.Join(err, failed)
		r.Machines = append(r.Machines, canon.MustMarshal(p))
	}
	return r, err
}
