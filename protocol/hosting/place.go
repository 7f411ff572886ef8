package hosting

import "fmt"

// Place is the offer of a provider to host one model.
type Place struct {
	Model    uint64 `cbor:"1,keyasint"`
	Provider string `cbor:"2,keyasint"`
	URL      string `cbor:"3,keyasint"` // of its HTTP interface
	Prices   Prices `cbor:"4,keyasint"`
	Bond     uint64 `cbor:"5,keyasint"` // uzen
	Channels uint32 `cbor:"6,keyasint"` // that are not settled
	Left     bool   `cbor:"7,keyasint"` // takes no new channels
	Until    int64  `cbor:"8,keyasint"` // last block in which the bond of a provider that left can be taken; 0: not known
	Lied     bool   `cbor:"9,keyasint"` // the bond was taken: takes no new channels
}

// Offered checks a new place of a provider.
func (p Place) Offered(rules Params) error {
	if err := p.validate(); err != nil {
		return err
	}
	if p.Bond < rules.MinBond {
		return fmt.Errorf("%w: %d uzen, at least %d", ErrBond, p.Bond, rules.MinBond)
	}
	return nil
}

func (p Place) validate() error {
	switch {
	case p.URL == "" || !text(p.URL, MaxURL):
		return fmt.Errorf("%w: an URL of %d bytes, wanted 1 to %d", ErrPlace, len(p.URL), MaxURL)
	case p.Prices.Input >= MaxAmount || p.Prices.Output >= MaxAmount:
		return fmt.Errorf("%w: prices of %d and %d grains, wanted less than 2^53", ErrPlace, p.Prices.Input, p.Prices.Output)
	case p.Bond >= MaxAmount:
		return fmt.Errorf("%w: a bond of %d uzen, wanted less than 2^53", ErrPlace, p.Bond)
	}
	return nil
}

// Open reports whether the place takes new channels.
func (p Place) Open() bool { return !p.Left && !p.Lied }

// Held is the part of the bond that the network holds, in uzen.
func (p Place) Held() uint64 {
	if p.Lied {
		return 0
	}
	return p.Bond
}

// Update replaces the URL, the prices and, by a larger one, the bond. The coin of the prices stays: channels are in it.
// It returns the uzen to lock in addition.
func (p Place) Update(to Place) (Place, uint64, error) {
	switch err := to.validate(); {
	case err != nil:
		return p, 0, err
	case !p.Open():
		return p, 0, fmt.Errorf("%w: the place of %s", ErrClosed, p.Provider)
	case to.Prices.Denom != p.Prices.Denom:
		return p, 0, fmt.Errorf("%w: its prices are in another coin: leave, and host again when the bond is back", ErrPlace)
	case to.Bond < p.Bond:
		return p, 0, fmt.Errorf("%w: it is %d uzen, and becomes no smaller before the provider leaves", ErrBond, p.Bond)
	}
	more := to.Bond - p.Bond
	p.URL, p.Prices, p.Bond = to.URL, to.Prices, to.Bond
	return p, more, nil
}

// Leave ends new channels. The bond stays for the blocks of unbonding after the last channel is settled.
func (p Place) Leave(rules Params, height int64) (Place, error) {
	if !p.Open() {
		return p, fmt.Errorf("%w: the place of %s", ErrClosed, p.Provider)
	}
	p.Left = true
	return p.unbond(rules, height), nil
}

// unbond begins the blocks of unbonding of a provider that left and has no channel.
func (p Place) unbond(rules Params, height int64) Place {
	if p.Left && p.Channels == 0 && !p.Lied {
		p.Until = height + int64(rules.Unbonding)
	}
	return p
}

// Unbonded reports whether the bond returns to the provider, and the place ends.
func (p Place) Unbonded(height int64) bool {
	return p.Left && !p.Lied && p.Channels == 0 && p.Until > 0 && height > p.Until
}

// Convict takes the bond of a provider that was shown to have lied: half of it is for the accuser, the rest for the
// community pool, so that a provider which accuses itself loses half.
func (p Place) Convict(accuser string) (Place, []Payment, error) {
	if p.Lied {
		return p, nil, fmt.Errorf("%w: the bond of %s was taken", ErrClosed, p.Provider)
	}
	half := p.Held() / 2
	payments := []Payment{{accuser, half}, {"", p.Held() - half}}
	p.Lied, p.Until = true, 0
	return p, payments, nil
}
