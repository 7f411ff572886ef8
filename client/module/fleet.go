package module

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// Invitation is what an owner offers to a machine.
type Invitation struct {
	Key       []byte // public, of the invitation alone
	Stake     uint64 // uzen, locked with the message
	DailyFees uint64 // uzen that the owner pays in a day for transactions of the machine, at most
	Until     int64  // height up to which a machine may enrol
}

// Invite invites machines to the fleet of the account.
func (g Registry) Invite(ctx context.Context, invitations ...Invitation) error {
	var msgs []sdk.Msg
	for _, i := range invitations {
		msgs = append(msgs, &registrypb.MsgInvite{Owner: g.account.Address(), Key: i.Key, Stake: i.Stake,
			DailyFees: i.DailyFees, Until: i.Until})
	}
	_, err := g.account.Submit(ctx, msgs...)
	return err
}

// Admission is the message by which the account becomes the machine of an owner by an invitation. Sign signs with the
// secret key of the invitation.
func Admission(chain, account, owner string, key []byte,
	sign func(text []byte) ([]byte, error)) (*registrypb.MsgEnrol, error) {
	signature, err := sign(fleet.Text(chain, account, owner))
	return &registrypb.MsgEnrol{Sender: account, Key: key, Signature: signature, Owner: owner}, err
}

// Enrol makes the account a machine of a fleet, registers it and makes its offers, in one transaction.
func (g Registry) Enrol(ctx context.Context, m *registrypb.MsgEnrol, p registry.Participant,
	offers ...market.Offer) error {
	p.Stake = 0
	msgs := []sdk.Msg{m, g.registration(p)}
	_, err := g.account.Submit(ctx, append(msgs, offered(g.account, offers)...)...)
	return err
}

// ChangeMachine lets a machine of the account take no new work, or take it again, and adds to its stake.
func (g Registry) ChangeMachine(ctx context.Context, machine string, drains bool, stake uint64) error {
	return send(ctx, g.account, &registrypb.MsgChangeMachine{Owner: g.account.Address(), Machine: machine, Drains: drains,
		Stake: stake})
}

// Revoke ends what the key of a machine of the account may do, or takes an invitation back.
func (g Registry) Revoke(ctx context.Context, machine string) error {
	return send(ctx, g.account, &registrypb.MsgRevoke{Owner: g.account.Address(), Machine: machine})
}

// Fleet lists the machines and the invitations of an owner, in order of address.
func (g Registry) Fleet(ctx context.Context, owner string) ([]registry.Participant, error) {
	var all []registry.Participant
	after := ""
	for {
		r, err := registrypb.NewQueryClient(g.account).Fleet(ctx, &registrypb.QueryFleetRequest{Owner: owner, After: after})
		page, err := query.List[registry.Participant](r.GetMachines(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].ID
	}
}
