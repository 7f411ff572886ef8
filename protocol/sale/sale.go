// Package sale has the rules by which files are sold for coins between two accounts that do not trust each other. It is
// an optimistic fair exchange in the manner of FairSwap (Dziembowski, Eckey, Faust, CCS 2018): the seller publishes
// the files encrypted, with the digests of their plain and of their encrypted leaves; the buyer locks the price; the
// seller answers with the key; and one leaf that does not decrypt to its digest refunds the buyer. The digests of the
// plain leaves are public before the sale, so that a complaint needs no circuit: it is one leaf and two paths. A seller
// may encrypt each leaf with a key of its own. Then leaves are drawn after the offer, and a proof shows a buyer before
// it pays that the keys of these leaves, which it gets, follow from the key that it will buy.
//
// The package stores nothing, moves no coins and transfers no files. Functions take the height of the block.
package sale

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/starling-network/starling/canon"
)

// Limits of an offer.
const (
	MaxName      = 100     // bytes
	MaxLocations = 8       // URLs
	MaxLocation  = 256     // bytes
	MaxLeaves    = 1 << 24 // of LeafBytes: 64 GiB
	MinWindow    = 20      // blocks
	LeavesBlock  = 256     // leaves for which the least window of complaints grows by a block: buyers decrypt them
	MaxWindow    = 100_000 // blocks
	MaxAmount    = 1 << 53 // grains
	SealKeyBytes = 32      // an X25519 public key
	MaskBoxBytes = 80      // an encapsulated key, and KeyBytes sealed with AES-GCM (RFC 9180)
	maxOrders    = 1_000   // of one offer at a time
	MaxRejected  = 100     // orders of one message
)

const million = 1_000_000

// Errors of the rules.
var (
	ErrTerms    = errors.New("sale: not an offer of files")
	ErrClosed   = errors.New("sale: the offer is closed")
	ErrParty    = errors.New("sale: the account is not this party of the sale")
	ErrPhase    = errors.New("sale: the order is in another phase")
	ErrOrder    = errors.New("sale: not an order")
	ErrEvidence = errors.New("sale: the evidence shows no lie")
	ErrMany     = errors.New("sale: too many open orders of one offer")
	ErrTwice    = errors.New("sale: it is on the network already")
)

// Content identifies the files of an offer: their bytes, cut into leaves, plain and encrypted.
type Content struct {
	Plain  canon.Digest `cbor:"1,keyasint"` // root of the tree over the digests of the plain leaves
	Sealed canon.Digest `cbor:"2,keyasint"` // root of the tree over the digests of the encrypted leaves
	Leaves uint64       `cbor:"3,keyasint"`
	Bytes  uint64       `cbor:"4,keyasint"`
	Key    canon.Digest `cbor:"5,keyasint"` // KeyDigest of the key that decrypts them
	// digest of the public description of the files, whose meaning the parties know
	Index  canon.Digest `cbor:"6,keyasint"`
	Scheme Scheme       `cbor:"7,keyasint,omitempty"` // by which they are encrypted
}

// Terms are the conditions that a seller offers files on.
type Terms struct {
	Name      string   `cbor:"1,keyasint"`
	Content   Content  `cbor:"2,keyasint"`
	Price     uint64   `cbor:"3,keyasint"` // grains of the coin
	Denom     string   `cbor:"4,keyasint"` // "": the network's own coin
	Bond      uint64   `cbor:"5,keyasint"` // grains that a lie costs the seller
	Answer    uint32   `cbor:"6,keyasint"` // blocks in which the seller answers an order
	Complaint uint32   `cbor:"7,keyasint"` // blocks in which the buyer may complain after the answer
	Seal      []byte   `cbor:"8,keyasint"` // X25519 public key, to which buyers encrypt their masks
	Locations []string `cbor:"9,keyasint"` // URLs of folders with the encrypted files
	Job       string   `cbor:"10,keyasint,omitempty"`

	// listing whose files these are: the price is its revenue; 0: the seller gets the price
	Listing uint64 `cbor:"11,keyasint,omitempty"`
	// millionths that the seller keeps of the part of the price that the shares of the listing would get
	SellerPart uint32 `cbor:"12,keyasint,omitempty"`
}

// Validate checks terms by themselves.
func (t Terms) Validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrTerms, fmt.Sprintf(format, args...))
	}
	switch c := t.Content; {
	case t.Name == "" || len(t.Name) > MaxName || !utf8.ValidString(t.Name):
		return reject("a name of %d bytes, wanted 1 to %d of UTF-8", len(t.Name), MaxName)
	case len(t.Job) > MaxName || !utf8.ValidString(t.Job):
		return reject("the name of a job of %d bytes, at most %d of UTF-8", len(t.Job), MaxName)
	case c.Leaves == 0 || c.Leaves > MaxLeaves:
		return reject("%d leaves, wanted 1 to %d", c.Leaves, MaxLeaves)
	case c.Bytes == 0 || c.Bytes > c.Leaves*LeafBytes:
		return reject("%d bytes in %d leaves of at most %d", c.Bytes, c.Leaves, LeafBytes)
	case c.Plain.IsZero() || c.Sealed.IsZero() || c.Key.IsZero() || c.Index.IsZero():
		return reject("a digest is missing")
	case c.Scheme > LeafKeys:
		return reject("files are encrypted by scheme %d, known are %d and %d", c.Scheme, OneKey, LeafKeys)
	case t.Price == 0 || t.Price >= MaxAmount || t.Bond >= MaxAmount:
		return reject("a price of %d and a bond of %d grains, wanted 1 and 0 to 2^53", t.Price, t.Bond)
	case t.Answer < MinWindow || max(t.Answer, t.Complaint) > MaxWindow || t.Complaint < LeastComplaint(t.Content.Leaves):
		return reject("%d blocks to answer and %d to complain, wanted %d and %d, and at most %d", t.Answer, t.Complaint,
			MinWindow, LeastComplaint(t.Content.Leaves), MaxWindow)
	case len(t.Seal) != SealKeyBytes:
		return reject("a public key of %d bytes, wanted %d", len(t.Seal), SealKeyBytes)
	case t.SellerPart > million || t.SellerPart > 0 && t.Listing == 0:
		return reject("the seller keeps %d millionths of the revenue of listing %d", t.SellerPart, t.Listing)
	case len(t.Locations) == 0 || len(t.Locations) > MaxLocations || slices.ContainsFunc(t.Locations, badLocation):
		return reject("wanted 1 to %d locations of at most %d bytes of UTF-8", MaxLocations, MaxLocation)
	}
	return nil
}

// LeastComplaint is the least window of complaints for files with a number of leaves, in blocks.
func LeastComplaint(leaves uint64) uint32 {
	return MinWindow + uint32(min(leaves, MaxLeaves)/LeavesBlock)
}

func badLocation(at string) bool {
	return at == "" || len(at) > MaxLocation || !utf8.ValidString(at)
}

// Offer is an offer of files on a network.
type Offer struct {
	ID        uint64 `cbor:"1,keyasint"`
	Seller    string `cbor:"2,keyasint"`
	Terms     Terms  `cbor:"3,keyasint"`
	Open      uint32 `cbor:"4,keyasint"` // orders that are not settled
	Sold      uint32 `cbor:"5,keyasint"` // orders that were paid
	Withdrawn bool   `cbor:"6,keyasint"` // takes no new orders
	Lied      bool   `cbor:"7,keyasint"` // a buyer showed a lie: takes no new orders, and the bond is spent
	// Draw of the beacon after the offer, if leaves have keys of their own; empty: not drawn yet
	Drawing []byte `cbor:"8,keyasint,omitempty"`
}

// Closed reports whether the offer takes no new orders.
func (o Offer) Closed() bool { return o.Withdrawn || o.Lied }

// Over reports whether nothing can happen to the offer any more.
func (o Offer) Over() bool { return o.Closed() && o.Open == 0 }

// Held are the grains that the network holds of the seller.
func (o Offer) Held() uint64 {
	if o.Lied || o.Over() {
		return 0
	}
	return o.Terms.Bond
}

// Compensation is the part of the bond for the first buyer that shows a lie: half of it. The other half goes to the
// community, so that a seller cannot show its own lie and lose nothing.
func (o Offer) Compensation() uint64 { return o.Held() / 2 }

// Phase of an order.
type Phase string

// Phases of an order. The first two are open.
const (
	Paid     Phase = "paid"     // the price is locked, and the seller has not answered
	Answered Phase = "answered" // the buyer can decrypt the files, and complain
	Settled  Phase = "settled"  // the seller has the price
	Expired  Phase = "expired"  // the seller did not answer: the buyer has the price back
	Refunded Phase = "refunded" // the buyer showed a lie, and has the price back
	Rejected Phase = "rejected" // the seller gave the order up, and the buyer has the price back
)

// Order is the purchase of one buyer.
type Order struct {
	ID     uint64       `cbor:"1,keyasint"`
	Offer  uint64       `cbor:"2,keyasint"`
	Buyer  string       `cbor:"3,keyasint"`
	Mask   canon.Digest `cbor:"4,keyasint"` // MaskDigest of the mask of the answer
	Box    []byte       `cbor:"5,keyasint"` // the mask, encrypted to the key Seal of the offer
	Phase  Phase        `cbor:"6,keyasint"`
	Until  int64        `cbor:"7,keyasint"` // last block of the phase
	Answer []byte       `cbor:"8,keyasint"` // the key of the files, with every byte XOR that of the mask
}

// Open reports whether the network holds the price of the order.
func (o Order) Open() bool { return o.Phase == Paid || o.Phase == Answered }

// Payment is an amount that the network pays from the coins that it holds, in grains of the coin of the offer.
type Payment struct {
	To     string // "": the community pool; Holders; or an account
	Amount uint64
}

// Holders stands for those that the price of an offer of a listing is revenue of: the holders of the shares of the
// listing and of the works that it was made from, and the seller, as the terms say.
const Holders = "holders"

// payee is the receiver of the price of an order that is settled.
func (o Offer) payee() string {
	if o.Terms.Listing > 0 {
		return Holders
	}
	return o.Seller
}
