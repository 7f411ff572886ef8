package catalog

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/verifier"
)

// Limits of proofs about a listing.
const (
	MaxProofs     = 256       // of one listing
	MaxProofBytes = 256 << 10 // of a verifying key, and of a proof with its statement
)

// ErrProven is wrapped by every reason why a proof is not stored.
var ErrProven = errors.New("catalog: the proof shows nothing about the listing")

// ProofKey is a verifying key that an account registered.
type ProofKey struct {
	Account string `cbor:"1,keyasint"`
	Height  int64  `cbor:"2,keyasint"`
	Key     []byte `cbor:"3,keyasint"`
}

// Proven is what the network verified about a listing: what the adapter under a commitment adds to a layer of the base
// model, for a text; or, by its Kind, another statement. docs/proofs.md says what each shows, and what not.
type Proven struct {
	Listing    uint64       `cbor:"1,keyasint"`
	Parent     uint64       `cbor:"2,keyasint"` // the base model
	Layer      string       `cbor:"3,keyasint"`
	Rank       uint32       `cbor:"4,keyasint"`
	Tokens     uint32       `cbor:"5,keyasint"` // of the text
	Key        canon.Digest `cbor:"6,keyasint"` // of the verifying key
	Setup      uint32       `cbor:"7,keyasint"` // contributions to the key, as it says
	Commitment []byte       `cbor:"8,keyasint"` // to the weights
	Proof      canon.Digest `cbor:"9,keyasint"` // of the bytes of the proof with its statement
	Height     int64        `cbor:"10,keyasint"`
	Bound      bool         `cbor:"11,keyasint,omitempty"` // the proof was made for the owner of the listing
	// "": an adapter. Others have no parent, no rank and no tokens
	Kind verifier.Kind `cbor:"12,keyasint,omitempty"`
	// all commitments of a proof that has several, in place of Commitment
	Commitments [][]byte `cbor:"13,keyasint,omitempty"`
}

// MakeProven is the record of a proof about a listing, by a key.
func MakeProven(l Listing, c verifier.Claim, k verifier.Key) Proven {
	p := Proven{Listing: l.ID, Layer: c.Part, Rank: c.Rank, Tokens: c.Tokens, Key: k.Digest, Setup: k.Contributions,
		Proof: c.Digest, Bound: c.Owner != ""}
	if c.Kind != verifier.Adapter {
		p.Kind = c.Kind
	}
	if len(c.Commitments) == 1 {
		p.Commitment = c.Commitments[0]
	} else {
		p.Commitments = c.Commitments
	}
	return p
}

// Fits checks that a statement about the files of a base model and of an adapter is about a listing and one of its
// parents, and was made for the owner of the listing or for no account.
func (l Listing) Fits(parent Listing, base, adapter canon.Digest, owner string) error {
	known := false
	for _, p := range l.Parents {
		known = known || p.Listing == parent.ID
	}
	switch {
	case l.Terms.Kind != Model || parent.Terms.Kind != Model:
		return fmt.Errorf("%w: listings %d and %d are not both models", ErrProven, l.ID, parent.ID)
	case !known:
		return fmt.Errorf("%w: listing %d is no parent of listing %d", ErrProven, parent.ID, l.ID)
	case base != parent.Terms.Files:
		return fmt.Errorf("%w: it is about the base model %s, and listing %d has the files %s", ErrProven, base.Short(),
			parent.ID, parent.Terms.Files.Short())
	}
	return l.Shows(adapter, owner)
}

// Shows checks that a statement about the files of a work is about a listing of a model, and was made for the owner of
// the listing or for no account.
func (l Listing) Shows(files canon.Digest, owner string) error {
	switch {
	case l.Terms.Kind != Model:
		return fmt.Errorf("%w: listing %d is no model", ErrProven, l.ID)
	case files != l.Terms.Files:
		return fmt.Errorf("%w: it is about the files %s, and listing %d has the files %s", ErrProven, files.Short(),
			l.ID, l.Terms.Files.Short())
	case owner != "" && owner != l.Owner:
		return fmt.Errorf("%w: it was made for the account %s, and listing %d is of %s", ErrProven, owner, l.ID, l.Owner)
	}
	return nil
}

// Layers counts the layers of a parent with a proof that was made for the owner of the listing, and returns the fewest
// contributions that a key of one claims. An owner makes any number of proofs about one layer.
func Layers(proofs []Proven, parent uint64) (n int, setup uint32) {
	seen := map[string]bool{}
	for _, p := range proofs {
		if p.Kind != "" || p.Parent != parent || !p.Bound {
			continue
		}
		if len(seen) == 0 || p.Setup < setup {
			setup = p.Setup
		}
		seen[p.Layer] = true
	}
	return len(seen), setup
}
