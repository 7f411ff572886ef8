package head

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"github.com/starling-network/starling/node/fleet/line"
)

// ErrTicket is returned for a text that is no ticket.
var ErrTicket = errors.New("head: not a ticket of starling fleet head")

// Limits of a ticket.
const (
	ticketPrefix = "starling-head-1."
	maxTicket    = 1024 // bytes of its text
	maxAddress   = 256
)

var form = line.Form{Prefix: ticketPrefix, Max: maxTicket, Err: ErrTicket}

// Ticket lets one machine of a local network use a head. It is secret.
type Ticket struct {
	Secret  [32]byte `cbor:"1,keyasint"` // seed of the key of the machine towards the head
	Head    [32]byte `cbor:"2,keyasint"` // Ed25519 key of the head
	Address string   `cbor:"3,keyasint"` // host:port of the head
}

// NewTicket is a ticket of a member that has none.
func NewTicket(head ed25519.PublicKey, address string) Ticket {
	t := Ticket{Head: [32]byte(head), Address: address}
	_, _ = rand.Read(t.Secret[:]) // never fails
	return t
}

// key is the key of the member towards the head. It signs nothing for a network.
func (t Ticket) key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(t.Secret[:]) }

// Public is the key by which the head knows the member.
func (t Ticket) Public() ed25519.PublicKey { return t.key().Public().(ed25519.PublicKey) }

// String is the text of the ticket: one line of letters, digits, dots, dashes and underscores.
func (t Ticket) String() string { return form.Text(t) }

// ParseTicket reads the text of a ticket.
func ParseTicket(text string) (t Ticket, err error) {
	if err := form.Parse(text, &t); err != nil {
		return t, err
	}
	if _, port, err := net.SplitHostPort(t.Address); err != nil || port == "" || len(t.Address) > maxAddress {
		return t, fmt.Errorf("%w: %q is no address of a head", ErrTicket, t.Address)
	}
	return t, nil
}

// ReadTicket reads a ticket: the text itself, or the file that holds it.
func ReadTicket(from string) (Ticket, error) {
	text, err := form.Read(from)
	if err != nil {
		return Ticket{}, err
	}
	return ParseTicket(text)
}
