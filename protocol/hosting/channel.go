package hosting

import (
	"fmt"
	"math/bits"
)

// Channel holds coins of a payer for one provider of one model.
type Channel struct {
	ID       uint64 `cbor:"1,keyasint"`
	Model    uint64 `cbor:"2,keyasint"`
	Provider string `cbor:"3,keyasint"`
	Payer    string `cbor:"4,keyasint"`
	Key      []byte `cbor:"5,keyasint"` // that signs vouchers: Ed25519
	Denom    string `cbor:"6,keyasint"`
	Locked   uint64 `cbor:"7,keyasint"` // grains since it was opened
	Redeemed uint64 `cbor:"8,keyasint"` // grains of them
	Until    int64  `cbor:"9,keyasint"` // last block in which the provider can redeem; 0: no end is set
}

// Held is the amount that the network holds, in grains.
func (c Channel) Held() uint64 { return c.Locked - c.Redeemed }

// OpenChannel opens a channel to the provider of a place, with an amount in the coin of its prices.
func (p Place) OpenChannel(id uint64, payer string, key []byte, amount uint64) (Place, Channel, error) {
	c := Channel{ID: id, Model: p.Model, Provider: p.Provider, Payer: payer, Key: key, Denom: p.Prices.Denom,
		Locked: amount}
	switch {
	case !p.Open():
		return p, c, fmt.Errorf("%w: %s", ErrClosed, p.Provider)
	case p.Channels >= maxChannels:
		return p, c, fmt.Errorf("%w: %d", ErrMany, p.Channels)
	case payer == "" || payer == p.Provider:
		return p, c, fmt.Errorf("%w: a provider pays itself", ErrParty)
	case len(key) != KeyBytes:
		return p, c, fmt.Errorf("%w: a key of %d bytes, wanted %d", ErrChannel, len(key), KeyBytes)
	case amount == 0 || amount >= MaxAmount:
		return p, c, fmt.Errorf("%w: %d grains, wanted 1 to 2^53", ErrChannel, amount)
	}
	p.Channels++
	return p, c, nil
}

// Fund adds grains to a channel. Only the payer may, unless it asked to close.
func (c Channel) Fund(sender string, amount uint64) (Channel, error) {
	switch {
	case sender != c.Payer:
		return c, fmt.Errorf("%w: %s pays through %d", ErrParty, c.Payer, c.ID)
	case c.Until > 0:
		return c, fmt.Errorf("%w: %d closes", ErrChannel, c.ID)
	case amount == 0 || amount >= MaxAmount || c.Locked+amount >= MaxAmount:
		return c, fmt.Errorf("%w: %d grains, wanted 1 to 2^53 with those of before", ErrChannel, amount)
	}
	c.Locked += amount
	return c, nil
}

// Split is how an amount that was redeemed is paid.
type Split struct {
	Fee      uint64 // for the community pool
	Part     uint64 // for the share holders of the model
	Provider uint64
}

// Redeem redeems grains up to a total by a voucher for at least that total: an honest provider redeems what its answers
// cost, which may be less than the voucher.
func (c Channel) Redeem(rules Params, m Model, sender, chain string, v Voucher, total uint64) (Channel, Split, error) {
	if sender != c.Provider {
		return c, Split{}, fmt.Errorf("%w: %s is paid through %d", ErrParty, c.Provider, c.ID)
	}
	if err := v.Check(c, chain); err != nil {
		return c, Split{}, err
	}
	if total <= c.Redeemed || total > v.Amount {
		return c, Split{}, fmt.Errorf("%w: a total of %d, wanted above %d and at most the %d of the voucher", ErrSpent, total,
			c.Redeemed, v.Amount)
	}
	amount := total - c.Redeemed
	c.Redeemed = total
	s := Split{Fee: partOf(amount, rules.FeePPM)}
	s.Part = partOf(amount-s.Fee, m.PartPPM)
	s.Provider = amount - s.Fee - s.Part
	return c, s, nil
}

// partOf is a number of millionths of an amount, rounded down.
func partOf(amount uint64, ppm uint32) uint64 {
	high, low := bits.Mul64(amount, uint64(min(ppm, million)))
	n, _ := bits.Div64(high, low, million) // high is below a million: the result is at most the amount
	return n
}

// Close ends a channel: that of its provider at once, that of its payer after the blocks in which the provider can
// still redeem. It reports whether the channel is settled.
func (c Channel) Close(rules Params, sender string, height int64) (Channel, bool, error) {
	switch {
	case sender == c.Provider:
		return c, true, nil
	case sender != c.Payer:
		return c, false, fmt.Errorf("%w: %d is of %s and %s", ErrParty, c.ID, c.Payer, c.Provider)
	case c.Until > 0:
		return c, false, fmt.Errorf("%w: %d closes after block %d", ErrChannel, c.ID, c.Until)
	}
	c.Until = height + int64(rules.Close)
	return c, false, nil
}

// Expired reports whether the blocks are over in which the provider could redeem.
func (c Channel) Expired(height int64) bool { return c.Until > 0 && height > c.Until }

// Settle ends a channel of a place at a height. The rest is the payer's.
func (p Place) Settle(rules Params, c Channel, height int64) (Place, []Payment) {
	p.Channels--
	p = p.unbond(rules, height)
	if c.Held() == 0 {
		return p, nil
	}
	return p, []Payment{{c.Payer, c.Held()}}
}
