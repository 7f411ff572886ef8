package catalog

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/starling-network/starling/protocol/reward"
)

// maxPrice is the limit of the price of all shares of an offer, in grains.
const maxPrice = 1 << 53

// Errors of offers of shares.
var (
	ErrOffer  = errors.New("catalog: not an offer of shares")
	ErrClosed = errors.New("catalog: the offer has fewer shares left")
	ErrParty  = errors.New("catalog: the account is not this party of the offer")
)

// ShareOffer offers shares of the revenue of a work for coins. The network holds the shares, and their revenue stays
// with the seller until a buyer has them.
type ShareOffer struct {
	ID     uint64 `cbor:"1,keyasint"`
	Seller string `cbor:"2,keyasint"`
	Pool   string `cbor:"3,keyasint"` // whose shares
	Shares uint64 `cbor:"4,keyasint"` // offered
	Left   uint64 `cbor:"5,keyasint"` // neither sold nor withdrawn
	Price  uint64 `cbor:"6,keyasint"` // grains of the coin for one share
	Denom  string `cbor:"7,keyasint"` // "": the network's own coin
}

// Validate checks a new offer.
func (o ShareOffer) Validate() error {
	high, price := bits.Mul64(o.Shares, o.Price)
	switch {
	case o.Shares == 0 || o.Shares > reward.Shares || o.Left != o.Shares:
		return fmt.Errorf("%w: %d shares, wanted 1 to %d", ErrOffer, o.Shares, uint64(reward.Shares))
	case o.Price == 0 || high > 0 || price >= maxPrice:
		return fmt.Errorf("%w: a price of %d grains for each of %d shares, wanted 1 or more, and less than 2^53 for all",
			ErrOffer, o.Price, o.Shares)
	}
	return nil
}

// Buy gives shares to a buyer, and returns the price in grains.
func (o ShareOffer) Buy(buyer string, shares uint64) (ShareOffer, uint64, error) {
	switch {
	case buyer == "" || buyer == o.Seller:
		return o, 0, fmt.Errorf("%w: the seller buys its own shares", ErrParty)
	case shares == 0 || shares > o.Left:
		return o, 0, fmt.Errorf("%w: %d of %d", ErrClosed, shares, o.Left)
	}
	o.Left -= shares
	return o, shares * o.Price, nil
}

// Withdraw returns the shares that are left to the seller.
func (o ShareOffer) Withdraw(sender string) (ShareOffer, uint64, error) {
	switch {
	case sender != o.Seller:
		return o, 0, fmt.Errorf("%w: %s offers the shares of %d", ErrParty, o.Seller, o.ID)
	case o.Left == 0:
		return o, 0, fmt.Errorf("%w: offer %d has none", ErrClosed, o.ID)
	}
	left := o.Left
	o.Left = 0
	return o, left, nil
}
