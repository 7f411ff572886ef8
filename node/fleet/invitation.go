// Package fleet is the side of an owner of machines, and the way of a machine to its owner: invitations, the list of
// machines, and the processes of one host. The rules are in protocol/registry/fleet.
package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/fleet/line"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	rules "github.com/starling-network/starling/protocol/registry/fleet"
)

// ErrInvitation is returned for a text that is no invitation.
var ErrInvitation = errors.New("fleet: not an invitation of starling fleet add")

// Limits of an invitation.
const (
	prefix = "starling-machine-1."
	// MaxText is the most bytes of the text of an invitation.
	MaxText = 4096
	maxURL  = 1024
)

var form = line.Form{Prefix: prefix, Max: MaxText, Err: ErrInvitation}

// Invitation admits one machine to the fleet of an owner. It is as secret as the stake of the machine.
type Invitation struct {
	Secret  [32]byte `cbor:"1,keyasint"` // of its key
	Chain   string   `cbor:"2,keyasint"`
	Owner   string   `cbor:"3,keyasint"`
	Network string   `cbor:"4,keyasint"` // HTTP interface of a validator
	Until   int64    `cbor:"5,keyasint"` // height
}

// NewInvitation makes one with a key of its own.
func NewInvitation(chain, owner, network string, until int64) Invitation {
	i := Invitation{Chain: chain, Owner: owner, Network: network, Until: until}
	_, _ = rand.Read(i.Secret[:]) // never fails
	return i
}

// Key is the key of the invitation.
func (i Invitation) Key() *wallet.Key { return wallet.KeyFromSeed(i.Secret) }

// String is the text of the invitation: one line of letters, digits, dots, dashes and underscores.
func (i Invitation) String() string { return form.Text(i) }

// Parse reads the text of an invitation.
func Parse(text string) (i Invitation, err error) {
	if err := form.Parse(text, &i); err != nil {
		return i, err
	}
	if len(i.Network) > maxURL || i.Network == "" || i.Chain == "" || len(i.Chain) > 64 {
		return i, fmt.Errorf("%w: a network of %d bytes, named with %d", ErrInvitation, len(i.Network), len(i.Chain))
	}
	if err := wallet.CheckAddress(i.Owner); err != nil {
		return i, fmt.Errorf("%w: its owner: %w", ErrInvitation, err)
	}
	return i, nil
}

// Read reads an invitation: the text itself, or the file that holds it.
func Read(from string) (Invitation, error) {
	text, err := form.Read(from)
	if err != nil {
		return Invitation{}, err
	}
	return Parse(text)
}

// Enrol makes an account a machine by an invitation, which Read reads, registers it and makes its offers.
func Enrol(ctx context.Context, c *client.Client, from string, say func(string), self registry.Participant,
	offers ...market.Offer) error {
	i, err := Read(from)
	if err != nil {
		return err
	}
	head, err := c.Ledger.Head(ctx)
	switch {
	case err != nil:
		return err
	case head.ChainID != i.Chain:
		return fmt.Errorf("%w of this network: it is for %s, and this is %s", ErrInvitation, i.Chain, head.ChainID)
	}
	if err := open(ctx, c, i); err != nil {
		return err
	}
	m, err := module.Admission(i.Chain, c.Address(), i.Owner, i.Key().PublicKey(), i.Key().Sign)
	if err != nil {
		return err
	}
	if err := c.Registry.Enrol(ctx, m, self, offers...); err != nil {
		return err
	}
	say("works for " + i.Owner + ", which is paid, and gets the stake back")
	return nil
}

// open returns why an invitation does not admit a machine to the fleet of the owner that it names.
func open(ctx context.Context, c *client.Client, i Invitation) error {
	_, err := c.Registry.Participant(ctx, account.Address(rules.Place(i.Owner, i.Key().PublicKey())))
	if errors.Is(err, client.ErrNotFound) {
		return fmt.Errorf("%w that is open: %s did not make it, or it was used or taken back", ErrInvitation, i.Owner)
	}
	return err
}

// Standing is the place of a machine in its fleet, for people, and whether it takes no new work. The text is empty
// for an account that is no machine.
func Standing(p registry.Participant) (text string, over bool) {
	m := p.Machine
	switch {
	case m.Owner == "":
		return "", false
	case m.Revoked > 0:
		return fmt.Sprintf("revoked by its owner %s in block %d: it answers for its work so far, and then ends", m.Owner,
			m.Revoked), true
	case m.Drains:
		return "its owner " + m.Owner + " lets it drain: it takes no new work, and ends when its runs are over", true
	}
	return "works for " + m.Owner + ", which is paid, and gets the stake back", false
}
