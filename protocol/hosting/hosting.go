// Package hosting has the rules by which models are hosted for coins: the models, of whose revenue the holders of their
// shares have a part, the places of providers that host them and lock a bond, and the channels through which payers pay
// for answers. A payer locks coins once and signs vouchers with growing amounts; the network sees the voucher that the
// provider redeems, and no request. It is a payment channel in one direction, as in Spilman's of Bitcoin.
//
// The package stores nothing, moves no coins and generates no text. Functions take the height of the block.
package hosting

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/starling-network/starling/canon"
)

// Limits of models, places and channels.
const (
	MaxName     = 100     // bytes
	MaxLicence  = 200     // bytes
	MaxURL      = 256     // bytes
	MaxAmount   = 1 << 53 // grains
	KeyBytes    = 32      // an Ed25519 public key
	million     = 1_000_000
	maxChannels = 100_000 // of a place at a time
	maxBlocks   = 10_000_000
	minClose    = 5 // blocks
)

// Errors of the rules.
var (
	ErrModel   = errors.New("hosting: not a model that can be hosted")
	ErrPlace   = errors.New("hosting: not a place of a provider")
	ErrBond    = errors.New("hosting: the bond is too small")
	ErrClosed  = errors.New("hosting: the provider takes no new channels")
	ErrMany    = errors.New("hosting: too many channels of one provider")
	ErrParty   = errors.New("hosting: the account is not this party of the channel")
	ErrChannel = errors.New("hosting: not a channel")
	ErrChain   = errors.New("hosting: the voucher is of another network")
	ErrForged  = errors.New("hosting: the voucher is not signed by the key of the channel")
	ErrSpent   = errors.New("hosting: the voucher is not above what was redeemed")
	ErrBeyond  = errors.New("hosting: the voucher is above what the channel holds")
	ErrParams  = errors.New("hosting: not parameters")
	ErrTwice   = errors.New("hosting: it is on the network already")
)

// Params are the parameters that governance sets.
type Params struct {
	FeePPM    uint32 `cbor:"1,keyasint"` // millionths of each redeemed amount, for the community pool
	Close     uint32 `cbor:"2,keyasint"` // blocks in which a provider may redeem after a payer asked to close
	Unbonding uint32 `cbor:"3,keyasint"` // blocks in which the bond of a provider that left can still be taken
	MinBond   uint64 `cbor:"4,keyasint"` // uzen
}

// DefaultParams are the parameters before governance sets any.
func DefaultParams() Params {
	return Params{FeePPM: 50_000, Close: 600, Unbonding: 20_000, MinBond: million}
}

// Validate checks parameters.
func (p Params) Validate() error {
	switch {
	case p.FeePPM > million:
		return fmt.Errorf("%w: a fee of %d millionths", ErrParams, p.FeePPM)
	case p.Close < minClose || p.Unbonding < p.Close || p.Unbonding > maxBlocks:
		return fmt.Errorf("%w: %d blocks to close and %d to unbond, wanted %d, no fewer, and at most %d", ErrParams, p.Close,
			p.Unbonding, minClose, maxBlocks)
	case p.MinBond >= MaxAmount:
		return fmt.Errorf("%w: a bond of %d uzen", ErrParams, p.MinBond)
	}
	return nil
}

// Model is a model that providers may host.
type Model struct {
	ID      uint64       `cbor:"1,keyasint"`
	Owner   string       `cbor:"2,keyasint"`
	Name    string       `cbor:"3,keyasint"`
	Files   canon.Digest `cbor:"4,keyasint"` // of the index of its files
	Weights canon.Digest `cbor:"5,keyasint"` // root of its weights
	Job     string       `cbor:"6,keyasint"` // whose share holders have the part of revenue; "": the owner has it
	PartPPM uint32       `cbor:"7,keyasint"` // millionths of revenue, after the fee
	Licence string       `cbor:"8,keyasint"` // an SPDX identifier, or a text
	// Base is the number of the model that this one is an adapter of; 0: it is a whole model. The files are those of the
	// adapter, and the root is over the weights of the base and those of the adapter.
	Base uint64 `cbor:"9,keyasint,omitempty"`
}

// Over reports a base that an adapter cannot have, by an error that wraps ErrModel: one that is an adapter, or that has
// the same weights.
func (m Model) Over(base Model) error {
	if base.Base != 0 || base.Weights == m.Weights {
		return fmt.Errorf("%w: an adapter of model %d, which is an adapter, or has the same weights", ErrModel, base.ID)
	}
	return nil
}

// Validate checks a model by itself.
func (m Model) Validate() error {
	switch {
	case m.Name == "" || !text(m.Name, MaxName):
		return fmt.Errorf("%w: a name of %d bytes, wanted 1 to %d of printable UTF-8", ErrModel, len(m.Name), MaxName)
	case !text(m.Licence, MaxLicence):
		return fmt.Errorf("%w: a licence of %d bytes, at most %d of printable UTF-8", ErrModel, len(m.Licence), MaxLicence)
	case !text(m.Job, MaxName):
		return fmt.Errorf("%w: the name of a job of %d bytes, at most %d", ErrModel, len(m.Job), MaxName)
	case m.Files.IsZero() || m.Weights.IsZero():
		return fmt.Errorf("%w: a digest is missing", ErrModel)
	case m.PartPPM > million:
		return fmt.Errorf("%w: a part of %d millionths", ErrModel, m.PartPPM)
	}
	return nil
}

// text reports whether a text is UTF-8 without control characters and not too long.
func text(s string, most int) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, control)
}

// Prices of a provider, in grains of one coin.
type Prices struct {
	Denom  string `cbor:"1,keyasint"` // "": the network's own coin
	Input  uint64 `cbor:"2,keyasint"` // for a million tokens of prompts
	Output uint64 `cbor:"3,keyasint"` // for a million tokens of answers
}

// Cost of a request in grains, rounded up; MaxAmount or more is no cost that a channel can pay.
func (p Prices) Cost(prompt, answer uint64) uint64 {
	high, low := bits.Mul64(prompt, p.Input)
	high2, low2 := bits.Mul64(answer, p.Output)
	low, carry := bits.Add64(low, low2, 0)
	high, over := bits.Add64(high, high2, carry)
	low, carry = bits.Add64(low, million-1, 0)
	high, over2 := bits.Add64(high, 0, carry)
	if over+over2 > 0 || high >= million {
		return MaxAmount
	}
	n, _ := bits.Div64(high, low, million)
	return min(n, MaxAmount)
}

// Payment is an amount that the network pays from the coins that it holds.
type Payment struct {
	To     string // "": the community pool
	Amount uint64 // grains of the coin of the channel, or uzen of a bond
}
