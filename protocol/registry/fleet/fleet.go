// Package fleet has the rules for machines that work for an account with keys of their own: how one is admitted, what
// its owner changes, and what revocation leaves. It holds no coins, and verifies no signature; docs/adr/0154 has the
// reasons.
package fleet

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Errors of this package.
var (
	ErrInvitation = errors.New("registry: not an invitation that admits the machine")
	ErrMachine    = errors.New("registry: the key of a machine may not do this")
	ErrNotOwner   = errors.New("registry: not a machine of this owner")
)

// Limits of an invitation.
const (
	KeySize   = 33                // bytes of the public key
	Signature = 64                // bytes
	MostFees  = 1_000_000_000_000 // uzen a day
)

// MostCoins is how many coins, in uzen, an account may have that becomes a machine. Its key cannot send them. They are
// not zero, as anybody can send coins to the account before it enrols.
const MostCoins = 1_000_000

// Place is the last part of the name of an invitation of an owner with a public key: 20 bytes, as an address has. It is
// the address of no account, whatever the key: an invitation restricts no account. No account takes the place of the
// invitation of another owner.
func Place(owner string, key []byte) []byte {
	d := canon.Sum("starling/invitation/1", []byte(owner), key)
	return d[:20]
}

// Text is what the key of an invitation signs to admit an account on a chain, as a machine of an owner. An invitation
// of another owner with this key does not admit it.
func Text(chain, account, owner string) []byte {
	d := canon.Sum("starling/enrol/1", []byte(chain), []byte(account), []byte(owner))
	return d[:]
}

// Least is the smallest stake of a machine: that of the role which asks for less.
func Least(params registry.Params) uint64 {
	return min(params.MinStake(crew.Worker), params.MinStake(crew.Verifier))
}

// Invite is an invitation of an owner, whose name is id, with a stake that the caller holds.
func Invite(id, owner string, stake, fees uint64, until int64, params registry.Params,
	height int64) (registry.Participant, error) {
	switch {
	case stake < Least(params):
		return registry.Participant{}, fmt.Errorf("%w: a machine stakes at least %d uzen", registry.ErrStake, Least(params))
	case fees > MostFees:
		return registry.Participant{}, fmt.Errorf("%w: fees of %d uzen a day, at most %d", ErrInvitation, fees,
			uint64(MostFees))
	case until <= height || until > height+terms.MaxBlocks:
		return registry.Participant{}, fmt.Errorf("%w: it ends in block %d, wanted one after %d, at most %d later",
			ErrInvitation, until, height, int64(terms.MaxBlocks))
	}
	return registry.Participant{ID: id, Stake: stake, Since: height,
		Machine: registry.Machine{Owner: owner, Fees: fees, Until: until}}, nil
}

// Open returns why an account may not become the machine of an invitation in a block.
func Open(invitation registry.Participant, account string, height int64) error {
	m := invitation.Machine
	switch {
	case m.Until == 0:
		return fmt.Errorf("%w: there is none with this key", ErrInvitation)
	case m.Revoked > 0:
		return fmt.Errorf("%w: its owner took it back in block %d", ErrInvitation, m.Revoked)
	case height > m.Until:
		return fmt.Errorf("%w: it ended in block %d", ErrInvitation, m.Until)
	case m.Claimed != "" && m.Claimed != account:
		return fmt.Errorf("%w: %s began to use it", ErrInvitation, m.Claimed)
	case m.Owner == account:
		return fmt.Errorf("%w: it is for a machine, with a key of its own, and this is the owner's", ErrInvitation)
	}
	return nil
}

// Enrol is the machine that an account becomes by an open invitation.
func Enrol(invitation registry.Participant, account string, height int64) registry.Participant {
	p := invitation
	p.ID, p.Since = account, height
	p.Machine.Until, p.Machine.Claimed = 0, ""
	return p
}

// Renew returns why a machine may not register so.
func Renew(p registry.Participant) error {
	switch {
	case p.Machine.Owner == "":
		return nil
	case p.Machine.Revoked > 0:
		return fmt.Errorf("%w: it was revoked in block %d", ErrMachine, p.Machine.Revoked)
	case p.Pool != "":
		return fmt.Errorf("%w: it works for its owner, and names no pool", ErrMachine)
	case p.Earning:
		return fmt.Errorf("%w: it has the stake of its owner, and earns none", ErrMachine)
	}
	return nil
}

// Owned returns why an account may not change or revoke a participant.
func Owned(p registry.Participant, owner string) error {
	switch {
	case p.Machine.Owner == "" || p.Machine.Owner != owner:
		return fmt.Errorf("%w: %s", ErrNotOwner, p.ID)
	case p.Machine.Revoked > 0:
		return fmt.Errorf("%w: %s was revoked in block %d", ErrNotOwner, p.ID, p.Machine.Revoked)
	}
	return nil
}

// Change lets a machine take no new work, or take it again, and adds to its stake.
func Change(p registry.Participant, drains bool, stake uint64) (registry.Participant, error) {
	if p.Machine.Until > 0 {
		return p, fmt.Errorf("%w: %s is an invitation: revoke it and add another", ErrNotOwner, p.ID)
	}
	p.Machine.Drains = drains
	return p.TopUp(stake)
}

// Revoke ends what a machine does. It has no role and no tier from then on, and its whole stake leaves in
// Params.UnstakeBlocks, until when it can be slashed for the work so far.
func Revoke(p registry.Participant, params registry.Params, height int64) registry.Participant {
	p.Machine.Revoked, p.Machine.Drains = max(height, 1), true
	p.Roles, p.Tier = nil, registry.NoTier
	if p.Leaving < p.Stake {
		p.Leaving, p.LeavesAt = p.Stake, height+params.UnstakeBlocks
	}
	return p
}
