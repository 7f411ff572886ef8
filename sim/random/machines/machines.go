// Package machines draws the messages by which owners invite machines to their fleets, and machines enrol. It knows no
// engine of simulations.
package machines

import (
	"context"
	"strconv"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
	"github.com/starling-network/starling/sim/random/draw"
)

// invitations is how many keys of invitations there are, each used again and again.
const invitations = 8

// key draws one of these keys.
func key(d draw.Source) *wallet.Key {
	return wallet.KeyFromSeed([32]byte([]byte("the key of an invitation, no. " + strconv.Itoa(10+d.Intn(invitations)))))
}

// Invitation draws an invitation, at a height.
func Invitation(d draw.Source, height int64) module.Invitation {
	return module.Invitation{Key: key(d).PublicKey(), Stake: 1_000_000 + d.Below(5_000_000), DailyFees: d.Below(1000),
		Until: height + d.UpTo(1, 200)}
}

// Admission lets an account of a chain use an invitation, if there is one with that key and the account is fresh; most
// are not.
func Admission(ctx context.Context, d draw.Source, r interface {
	Participants(context.Context) ([]registry.Participant, error)
}, chain, account string) (*registrypb.MsgEnrol, error) {
	key, owner := key(d), ""
	all, err := r.Participants(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.ID == sdk.AccAddress(fleet.Place(p.Machine.Owner, key.PublicKey())).String() {
			owner = p.Machine.Owner
		}
	}
	return module.Admission(chain, account, owner, key.PublicKey(), key.Sign)
}
