// Package federated is how owners of data and a coordinator train one model together: the terms of a job, the messages
// of a round, and both sides of a round as state machines over package secagg
// (docs/adr/0190-sums-of-masked-integers.md), or over package homomorphic with the keys of the ciphertexts added by
// secagg (docs/adr/0220-ciphertexts-are-opened-by-the-sum-of-their-keys.md). A Round and a Member hold no connection
// and no clock, and draw from seeds that the caller gives. The package trains nothing and keeps no file.
package federated

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/secagg"
)

// ErrMessage wraps every reason why a message of a stranger is refused.
var ErrMessage = errors.New("federated training")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
}

// Limits of an offer, in bytes and elements.
const (
	MaxFile      = 1 << 20
	MaxOverrides = 64
	MaxOverride  = 4096
	MaxOffer     = MaxFile + MaxOverrides*(MaxOverride+8) + 4096
)

// Offer is what a coordinator states of a job before an owner takes part.
type Offer struct {
	File      []byte       `cbor:"1,keyasint"` // the job file
	Overrides []string     `cbor:"2,keyasint"` // of its keys
	Program   canon.Digest `cbor:"3,keyasint"` // of the training step
	Numerics  uint32       `cbor:"4,keyasint"` // version of the numerics
	Entries   int          `cbor:"5,keyasint"` // trained weights

	// Base is the digest of the base model, with its tokenizer, that owners have to have; nil: the job has none.
	Base *canon.Digest `cbor:"6,keyasint,omitempty"`
}

// DecodeOffer reads the bytes of an offer.
func DecodeOffer(b []byte) (*Offer, error) {
	o := new(Offer)
	if err := decode(b, MaxOffer, o); err != nil {
		return nil, err
	}
	if len(o.File) > MaxFile || len(o.Overrides) > MaxOverrides || o.Entries < 1 || o.Entries >= secagg.MaxEntries {
		return nil, refuse("a job file of %d bytes with %d overrides, %d weights", len(o.File), len(o.Overrides), o.Entries)
	}
	for _, s := range o.Overrides {
		if len(s) > MaxOverride {
			return nil, refuse("an override of %d bytes", len(s))
		}
	}
	return o, nil
}

// Job names the job of an offer.
func (o *Offer) Job() canon.Digest { return canon.Hash("starling/federated/job/1", o) }

// Announcement opens a round.
type Announcement struct {
	Round uint32       `cbor:"1,keyasint"`
	Model canon.Digest `cbor:"2,keyasint"` // ModelDigest of the weights that the round starts from
	Over  bool         `cbor:"3,keyasint"` // the job is over, and there is no further round

	// Of method scaffold. Since is the round in which all control variates were 0 the last time. Counted is the number of
	// sums since then that have an update of the owner that gets the announcement: Session and Drawn do not depend on it.
	Since   uint32 `cbor:"4,keyasint,omitempty"`
	Counted uint32 `cbor:"5,keyasint,omitempty"`
}

// encoded are the bytes of an announcement without Counted, which differs from owner to owner.
func (a Announcement) encoded() []byte {
	a.Counted = 0
	return canon.MustMarshal(a)
}

// MaxAnnouncement bounds the bytes of an announcement.
const MaxAnnouncement = 256

// DecodeAnnouncement reads the bytes of an announcement.
func DecodeAnnouncement(b []byte) (a Announcement, err error) {
	return a, decode(b, MaxAnnouncement, &a)
}

// Session names the secure sum of a round. A round of a job has one.
func Session(job canon.Digest, a Announcement) canon.Digest {
	return canon.Sum("starling/federated/session/1", job[:], a.encoded())
}

// Drawn reports whether an owner is asked in a round, which a fraction of the owners is: it depends on the weights that
// the round starts from, and on the name of the owner.
func Drawn(job canon.Digest, a Announcement, name ed25519.PublicKey, fraction float64) bool {
	d := canon.Sum("starling/federated/draw/1", job[:], a.encoded(), name)
	x := uint64(0)
	for _, b := range d[:6] {
		x = x<<8 | uint64(b)
	}
	return float64(x) < fraction*(1<<48)
}

// Body is the digest of a message.
func Body(b []byte) canon.Digest { return canon.Sum("starling/federated/body/1", b) }

// Signed is what an owner signs of a request: its purpose, such as a phase, in a round, and the digest of its body.
func Signed(job canon.Digest, purpose string, round uint32, body canon.Digest) []byte {
	d := canon.Sum("starling/federated/request/1", job[:], []byte(purpose), canon.MustMarshal(round), body[:])
	return d[:]
}

// truthful is how many survivors of a sum of n owners add their noise when a third lies.
func truthful(n int) int { return secagg.Threshold(n) - n/3 }

// MaxNoise is the largest multiplier of noise: with it, noise and updates of secagg.MaxClients owners fit 32 bits.
const MaxNoise = 4

// scale is the noise that each of n owners adds on the grid, so that those that tell the truth add the multiplier times
// the clipping norm together; 0 for none.
func scale(multiplier float64, n int) uint64 {
	return uint64(math.Ceil(multiplier * fixedpoint.Unit / math.Sqrt(float64(truthful(n)))))
}

// decode reads canonical bytes of at most a number.
func decode(b []byte, limit int, v any) error {
	if len(b) > limit {
		return refuse("a message of %d bytes, at most %d", len(b), limit)
	}
	if err := canon.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}
