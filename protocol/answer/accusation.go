package answer

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
)

// MoveBlocks is the number of blocks that a party of an accusation has for a move.
const MoveBlocks = 300

// Errors of accusations.
var (
	ErrAccusation = errors.New("answer: this cannot be accused")
	ErrOpen       = errors.New("answer: the answer is accused already")
)

// Accusation is the claim of an account that a provider has signed a wrong answer, with the dispute about it.
type Accusation struct {
	ID       uint64          `cbor:"1,keyasint"`
	Model    uint64          `cbor:"2,keyasint"`
	Provider string          `cbor:"3,keyasint"`
	Accuser  string          `cbor:"4,keyasint"`
	Receipt  canon.Digest    `cbor:"5,keyasint"`
	From     uint32          `cbor:"6,keyasint"` // the first token of the answer that is decided
	Bond     uint64          `cbor:"7,keyasint"` // uzen of the accuser
	Game     dispute.Dispute `cbor:"8,keyasint"`
}

// Accuse opens an accusation of a receipt that has passed Check, in a block of a network. config is the dispute about
// it. A receipt can be accused for a number of blocks.
func Accuse(id uint64, r Receipt, from uint32, accuser, chain string, bond uint64, config dispute.Config, height,
	window int64) (a Accusation, err error) {
	switch {
	case r.Chain != chain:
		return a, fmt.Errorf("%w: the receipt is of network %s", ErrAccusation, r.Chain)
	case accuser == "" || accuser == r.Provider:
		return a, fmt.Errorf("%w: %s accuses itself", ErrAccusation, r.Provider)
	case r.Height > height || r.Height < height-window:
		return a, fmt.Errorf("%w: the receipt is of block %d, and this is block %d; it can be accused for %d blocks",
			ErrAccusation, r.Height, height, window)
	}
	a = Accusation{ID: id, Model: r.Model, Provider: r.Provider, Accuser: accuser, Receipt: r.Digest(), From: from,
		Bond: bond}
	a.Game, err = dispute.Open(config, 1, height)
	return a, err
}

// Open reports whether the accusation is not decided.
func (a Accusation) Open() bool { return a.Game.Stage != dispute.Over }

// Convicted reports whether the provider has lost.
func (a Accusation) Convicted() bool { return a.Game.Verdict != nil && a.Game.Verdict.AsserterLies }

// BondTo is the account that gets the bond of the accuser at the end: the provider that was accused falsely, or else
// the accuser, also where another accusation has taken the bond of the provider before.
func (a Accusation) BondTo() string {
	if a.Game.Verdict != nil && !a.Game.Verdict.AsserterLies {
		return a.Provider
	}
	return a.Accuser
}
