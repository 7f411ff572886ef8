// Package secagg adds vectors of integers so that the party that adds them learns the sum and no vector: each client
// hides its vector under masks that cancel in the sum, and the masks of clients that drop out are recovered from shares
// (Bonawitz et al. 2017, the protocol against active adversaries). A Client and a Server are state machines: they hold
// no connection and no clock, and draw from seeds that the caller gives.
//
// The phases are: advertise keys, share secrets, send the masked vector, confirm the survivors, open shares. A client
// passes each once. The server learns a vector only if it controls Threshold less one clients and more, or if it can
// sign as clients that do not exist: a client that names the keys it knows is safe from the latter.
package secagg

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/secagg/shamir"
)

// Limits of a sum.
const (
	MaxClients = 128
	MinCohort  = 3 // of two clients, each would learn the vector of the other from the sum
	MaxEntries = 1 << 26
)

// ErrProtocol wraps every reason why a message is refused.
var ErrProtocol = errors.New("secure aggregation")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Threshold is how many of n clients recover the masks of the others: more than two thirds, with which up to a third
// may lie together with the server (Bonawitz et al. 2017, section 6.2).
func Threshold(n int) int { return 2*n/3 + 1 }

// Terms are agreed before a sum.
type Terms struct {
	Session canon.Digest // of this sum alone
	Cohort  int          // the least number of clients in it, at least MinCohort
	Entries int          // of a vector
	Known   [][]byte     // of a client: the Ed25519 keys of which Cohort must take part; nil: it trusts any
}

// Check refuses terms out of range.
func (t Terms) Check() error {
	if t.Cohort < MinCohort || t.Cohort > MaxClients || t.Entries < 1 || t.Entries > MaxEntries {
		return refuse("a cohort of %d with %d entries, wanted %d..%d and 1..%d", t.Cohort, t.Entries, MinCohort, MaxClients,
			MaxEntries)
	}
	return nil
}

// Advert has the keys of a client for one sum, signed with the key that names it.
type Advert struct {
	Name      []byte `cbor:"1,keyasint"` // Ed25519
	Channel   []byte `cbor:"2,keyasint"` // X25519, for shares
	Mask      []byte `cbor:"3,keyasint"` // X25519, for masks
	Signature []byte `cbor:"4,keyasint"`
}

func (a Advert) signed(session canon.Digest) []byte {
	d := canon.Sum("starling/secagg/advert/1", session[:], a.Name, a.Channel, a.Mask)
	return d[:]
}

// check refuses an advert that its client has not signed for this session.
func (a Advert) check(session canon.Digest) error {
	if len(a.Name) != ed25519.PublicKeySize || len(a.Channel) != 32 || len(a.Mask) != 32 ||
		!ed25519.Verify(a.Name, a.signed(session), a.Signature) {
		return refuse("keys that client %.8x has not signed", a.Name)
	}
	return nil
}

// Roster are the adverts of the clients of a sum, in the order of their names. An index of a client is into it.
type Roster []Advert

// checkRoster refuses a roster that is too small, out of order, or not signed.
func (t Terms) checkRoster(r Roster) error {
	if len(r) < t.Cohort || len(r) > MaxClients {
		return refuse("%d clients, wanted %d..%d", len(r), t.Cohort, MaxClients)
	}
	for i, a := range r {
		if err := a.check(t.Session); err != nil {
			return err
		}
		if i > 0 && bytes.Compare(r[i-1].Name, a.Name) >= 0 {
			return refuse("clients %d and %d of the roster are out of order", i-1, i)
		}
	}
	return nil
}

// digest names a roster in a session.
func (t Terms) digest(r Roster) canon.Digest {
	return canon.Sum("starling/secagg/roster/1", t.Session[:], canon.MustMarshal(r))
}

// known refuses a set of clients of which too few are known.
func (t Terms) known(r Roster, of []int) error {
	n := 0
	for _, i := range of {
		if t.Known == nil || slices.ContainsFunc(t.Known, func(k []byte) bool { return bytes.Equal(k, r[i].Name) }) {
			n++
		}
	}
	if n < t.Cohort {
		return refuse("%d of %d clients are known, wanted %d", n, len(of), t.Cohort)
	}
	return nil
}

// Dealt are the shares of one client for all, sealed each for its receiver, with the digests by which the server tells
// a wrong share.
type Dealt struct {
	Sealed  [][]byte       `cbor:"1,keyasint"` // by index of the receiver; that of the dealer is empty
	Masks   []canon.Digest `cbor:"2,keyasint"` // of the shares of the key of masks, by index
	Selves  []canon.Digest `cbor:"3,keyasint"` // of the shares of the seed of the dealer's own mask
	SelfSum canon.Digest   `cbor:"4,keyasint"` // of that seed
}

// sealedSize is the length of two shares with the tag of AES-GCM.
const sealedSize = 2*shamir.Size + 16

func (d Dealt) check(n, from int) error {
	if len(d.Sealed) != n || len(d.Masks) != n || len(d.Selves) != n {
		return refuse("shares for %d of %d clients", len(d.Sealed), n)
	}
	for i, s := range d.Sealed {
		if want := sealedSize; i != from && len(s) != want || i == from && len(s) != 0 {
			return refuse("shares of %d bytes for client %d", len(s), i)
		}
	}
	return nil
}

// Received are the shares that one client dealt to another.
type Received struct {
	From   int          `cbor:"1,keyasint"`
	Sealed []byte       `cbor:"2,keyasint"`
	Mask   canon.Digest `cbor:"3,keyasint"`
	Self   canon.Digest `cbor:"4,keyasint"`
}

// Confirmation is the signature of a client under the survivors of a sum.
type Confirmation struct {
	From      int    `cbor:"1,keyasint"`
	Signature []byte `cbor:"2,keyasint"`
}

func survivorsDigest(roster canon.Digest, survivors []int) []byte {
	d := canon.Sum("starling/secagg/survivors/1", roster[:], canon.MustMarshal(survivors))
	return d[:]
}

// Opened has one share of each client whose masks are in the way: of the key of masks of one that dropped out, of the
// seed of the own mask of a survivor.
type Opened struct {
	Of    int               `cbor:"1,keyasint"`
	Share [shamir.Size]byte `cbor:"2,keyasint"`
}

func shareDigest(session canon.Digest, kind string, dealer, receiver int, share [shamir.Size]byte) canon.Digest {
	return canon.Sum("starling/secagg/share/1", session[:], []byte(kind), fmt.Appendf(nil, "%d/%d", dealer, receiver),
		share[:])
}

func seedDigest(session canon.Digest, seed [shamir.Size]byte) canon.Digest {
	h := sha256.Sum256(seed[:])
	return canon.Sum("starling/secagg/seed/1", session[:], h[:])
}

// Kinds of shares.
const maskKey, selfSeed = "mask", "self"

// subset refuses indices of a roster that are out of order or out of range.
func subset(n int, of []int) error {
	for i, k := range of {
		if k < 0 || k >= n || i > 0 && of[i-1] >= k {
			return refuse("indices %v of %d clients", of, n)
		}
	}
	return nil
}
