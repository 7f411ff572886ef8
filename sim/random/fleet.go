package random

import (
	"strconv"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// invitations is how many keys of invitations there are, each used again and again.
const invitations = 8

// invitation is one of these keys.
func invitation(x *msgFactory) *wallet.Key {
	return wallet.KeyFromSeed([32]byte([]byte("the key of an invitation, no. " + strconv.Itoa(10+x.Intn(invitations)))))
}

// invite lets an account invite a machine.
func invite(x *msgFactory) error {
	return x.Registry.Invite(x.ctx, module.Invitation{Key: invitation(x).PublicKey(),
		Stake: 1_000_000 + x.Below(5_000_000), DailyFees: x.Below(1000), Until: x.ctx.BlockHeight() + x.UpTo(1, 200)})
}

// enrol lets an account use an invitation, if there is one with that key and the account is fresh; most are not.
func enrol(x *msgFactory) error {
	key, owner := invitation(x), ""
	all, err := x.Registry.Participants(x.ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.ID == sdk.AccAddress(fleet.Place(p.Machine.Owner, key.PublicKey())).String() {
			owner = p.Machine.Owner
		}
	}
	m, err := module.Admission(chainID, x.Address(), owner, key.PublicKey(), key.Sign)
	if err != nil {
		return err
	}
	_, err = x.Submit(x.ctx, m)
	return err
}

// machine makes a message of an owner about a machine or an invitation.
func machine(say func(*msgFactory, registry.Participant) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		all, err := x.Registry.Participants(x.ctx)
		if err != nil {
			return err
		}
		return untilSaid(x, all, func(p registry.Participant) error {
			if p.Machine.Owner == "" || p.Machine.Revoked > 0 || !x.as(p.Machine.Owner) {
				return nil
			}
			return say(x, p)
		})
	}
}
