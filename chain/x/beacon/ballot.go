package beacon

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/ecvrf"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/protocol/threshold"
)

// ballot is the content of a vote extension. A ballot with only a proof is sent as the 80 bytes of the proof.
type ballot struct {
	Proof     []byte                `cbor:"1,keyasint,omitempty"` // of the VRF, while no group signs
	Key       []byte                `cbor:"2,keyasint,omitempty"` // of the validator, for later rosters
	Epoch     uint64                `cbor:"3,keyasint,omitempty"` // of the ceremony of the next three fields
	Deal      *threshold.Deal       `cbor:"4,keyasint,omitempty"`
	Complaint *threshold.Complaint  `cbor:"5,keyasint,omitempty"`
	Done      bool                  `cbor:"6,keyasint,omitempty"`  // no complaint about the remaining deals
	Partials  []byte                `cbor:"7,keyasint,omitempty"`  // signatures with the validator's shares
	Seen      []censorship.Sighting `cbor:"8,keyasint,omitempty"`  // moves of disputes that wait for a block
	Longer    bool                  `cbor:"9,keyasint,omitempty"`  // an extra field, if the encoding is as long as a proof
	Rider     []byte                `cbor:"10,keyasint,omitempty"` // what the module of payouts adds
}

// maxBallot is the size limit in bytes, above the size of the largest deal, for MaxMembers.
const maxBallot = 128 << 10

func (b ballot) encode() ([]byte, error) {
	alone := ballot{Proof: b.Proof}
	b.Longer = false
	out, err := canon.Marshal(b)
	if err != nil {
		return nil, err
	}
	same, err := canon.Marshal(alone)
	if err == nil && string(same) == string(out) {
		return b.Proof, nil // empty without a proof
	}
	if b.Longer = len(out) == ecvrf.ProofSize; b.Longer {
		return canon.Marshal(b)
	}
	return out, err
}

func decodeBallot(v []byte) (b ballot, err error) {
	switch {
	case len(v) == 0:
		return b, nil
	case len(v) == ecvrf.ProofSize:
		return ballot{Proof: v}, nil
	case len(v) > maxBallot:
		return b, fmt.Errorf("beacon: a vote of %d bytes, at most %d", len(v), maxBallot)
	}
	if err := canon.Unmarshal(v, &b); err != nil {
		return b, err
	}
	if again, err := b.encode(); err != nil || !bytes.Equal(again, v) {
		return b, fmt.Errorf("beacon: a vote that is not in its one encoding")
	}
	return b, nil
}

// fits reports whether a ballot holds only what the ceremony needs from its validator: extended commits are part of
// blocks, and a few votes must not fill them.
func (k ceremonies) fits(ctx context.Context, validator []byte, b ballot) (bool, error) {
	if len(b.Key) > threshold.KeySize || !censorship.Fit(b.Seen) {
		return false, nil
	}
	if b.Deal == nil && b.Complaint == nil {
		return true, nil
	}
	c, ok, err := item(ctx, k.ceremony)
	at := member(c.Roster, validator)
	if err != nil || !ok || at < 0 || b.Epoch != c.Roster.Epoch {
		return false, err
	}
	if p := b.Complaint; p != nil && (c.Closed == 0 || c.Heard[at] ||
		len(p.Shared)+len(p.Proof) > 2*threshold.CommitmentSize) {
		return false, nil
	}
	d := b.Deal
	return d == nil || c.Closed == 0 && c.Deals[at] == none &&
		len(d.Ephemeral)+len(d.Proof) <= 2*threshold.CommitmentSize &&
		len(d.Shares) == c.Roster.Size()*threshold.ShareSize &&
		len(d.Commitments) == int(c.Roster.Threshold)*threshold.CommitmentSize, nil
}
