// Package coins reads amounts that people write with the symbol of a coin, such as 25 or 0.5usdc, and prices such as
// usdc=0.002, with the coins of a network.
package coins

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
)

// ErrText is returned for a text that is no amount or no price.
var ErrText = errors.New("not an amount")

// Market has the coins of a network, and takes offers.
type Market interface {
	Coin(ctx context.Context, name string) (coin.Registered, error)
	Make(ctx context.Context, o market.Offer) error
}

// Amount is a positive amount of a coin.
type Amount struct {
	coin.Registered
	Grains uint64
}

// String is the amount with the name of its coin.
func (a Amount) String() string { return a.Text(a.Grains) }

// Parse reads an amount: a decimal number of ZEN, or of another coin with its symbol after it.
func Parse(ctx context.Context, m Market, text string) (Amount, error) {
	number, symbol, ok := coin.Split(text)
	if !ok {
		return Amount{}, fmt.Errorf("%w: %q: write a decimal number of ZEN, or one with the symbol of a coin, such as "+
			"5usdc", ErrText, text)
	}
	c, err := m.Coin(ctx, symbol)
	if err != nil {
		return Amount{}, err
	}
	grains, err := c.Parse(number)
	if err == nil && grains == 0 {
		err = fmt.Errorf("%w: %q: 0 moves nothing", ErrText, text)
	}
	return Amount{c, grains}, err
}

// Prices are prices in coins other than the network's own, as people write them: usdc=0.002, in coins for 10^15
// operations, or for an hour of a machine.
type Prices struct {
	Operations []string
	Hours      []string
	Foreign    bool // work in the network's own coin is not offered
}

// Asks reads the prices with the coins of a network.
func (p Prices) Asks(ctx context.Context, m Market) (asks []marketpb.Ask, err error) {
	read := func(text string, into func(*marketpb.Ask, uint64)) error {
		symbol, number, ok := strings.Cut(text, "=")
		if !ok || symbol == "" {
			return fmt.Errorf("%w: %q: write a coin and a price, such as usdc=0.002", ErrText, text)
		}
		c, err := m.Coin(ctx, symbol)
		if err != nil {
			return err
		}
		if c.Own() {
			return fmt.Errorf("%w: %q: the price in %s is given by itself", ErrText, text, c.Name())
		}
		grains, err := c.Parse(number)
		if err != nil {
			return err
		}
		ask := marketpb.Ask{Denom: c.Denom}
		into(&ask, grains)
		asks = append(asks, ask)
		return nil
	}
	for _, text := range p.Operations {
		err = errors.Join(err, read(text, func(a *marketpb.Ask, n uint64) { a.Price = n }))
	}
	for _, text := range p.Hours {
		err = errors.Join(err, read(text, func(a *marketpb.Ask, n uint64) { a.Hourly = n }))
	}
	return asks, err
}

// Asked are the prices at which a worker or verifier offers its work.
type Asked struct {
	Market
	Class crew.Role
	Price uint64 // uzen per 10^15 floating-point operations
	Prices
}

// Offer is the offer to take part in a number of runs at a time: slots.
func (a Asked) Offer(ctx context.Context, slots uint32) (market.Offer, error) {
	o := market.Offer{Role: a.Class, Price: a.Price, Slots: slots, Foreign: a.Foreign}
	asks, err := a.Asks(ctx, a.Market)
	for _, ask := range asks {
		o.Asks = append(o.Asks, market.Ask{Denom: ask.Denom, Price: ask.Price})
	}
	return o, err
}

// Make makes the offer; one for no run withdraws it.
func (a Asked) Make(ctx context.Context, slots uint32) error {
	o, err := a.Offer(ctx, slots)
	if err != nil {
		return err
	}
	return a.Market.Make(ctx, o)
}

// Several are offers of one account in several classes of work.
type Several []Asked

// Offers are the offers to take part in a number of runs at a time in each class: slots.
func (s Several) Offers(ctx context.Context, slots uint32) (all []market.Offer, err error) {
	for _, a := range s {
		o, err := a.Offer(ctx, slots)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// Dropped are the withdrawals of those of the offers of an account that are in other classes of work: a registration
// keeps the roles that its owner no longer names, so that such an offer would still be matched.
func (s Several) Dropped(offers []market.Offer, account string) (gone []market.Offer) {
	for _, o := range offers {
		if o.ID == account && !o.Pool && !slices.ContainsFunc(s, func(a Asked) bool { return a.Class == o.Role }) {
			gone = append(gone, market.Offer{Role: o.Role})
		}
	}
	return gone
}

// Make makes the offers, one after the other; those for no run withdraw them. It may be repeated after an error.
func (s Several) Make(ctx context.Context, slots uint32) error {
	for _, a := range s {
		if err := a.Make(ctx, slots); err != nil {
			return err
		}
	}
	return nil
}

// Shown is a coin as the API gives it: nil for the network's own.
func Shown(c coin.Coin) *api.Coin {
	if c.Own() {
		return nil
	}
	return &api.Coin{Denom: c.Denom, Symbol: c.Symbol, Decimals: c.Exponent}
}

// Holding is what an account has of a coin, in its grains.
type Holding struct {
	Coin     coin.Coin `json:"coin"`
	Balance  uint64    `json:"balance"`
	Stake    uint64    `json:"stake"`
	Leaving  uint64    `json:"leaving,omitempty"` // of the stake
	LeavesAt int64     `json:"leaves_at,omitempty"`
	Slashed  uint64    `json:"slashed,omitempty"`
}

// Order is an order in the coin of a job file, whose amounts are in millionths of the coin: in grains of this coin, as
// the network has it registered.
func Order(ctx context.Context, m Market, symbol string, o market.Order) (market.Order, error) {
	c, err := m.Coin(ctx, symbol)
	if err != nil || c.Own() {
		return o, err
	}
	if c.Closed {
		return o, fmt.Errorf("%w: %s takes no new orders", coin.ErrCoin, c.Name())
	}
	o.Coin, o.Waiting = c.Coin, c.Waiting
	if o.Budget, err = Grains(c.Coin, o.Budget); err != nil {
		return o, fmt.Errorf("budget.max_cost: %w", err)
	}
	if o.PriceCap, err = Grains(c.Coin, o.PriceCap); err != nil {
		return o, fmt.Errorf("budget.max_price: %w", err)
	}
	if o.Conditions.Hourly, err = Grains(c.Coin, o.Conditions.Hourly); err != nil {
		return o, fmt.Errorf("budget.max_price_per_hour: %w", err)
	}
	return o, nil
}

// Grains is an amount in millionths of a coin, as job files have it, in grains of the coin, exactly.
func Grains(c coin.Coin, millionths uint64) (uint64, error) {
	return c.Parse(coin.Coin{}.Amount(millionths))
}

// Millionths is an amount in grains in whole millionths of its coin, as job files have it, and whether there is more.
// An amount beyond 64 bits saturates.
func Millionths(c coin.Coin, grains uint64) (n uint64, more bool) {
	digits, file := c.Digits(), coin.Coin{}.Digits()
	if digits >= file {
		unit := uint64(math.Pow10(digits - file))
		return grains / unit, grains%unit > 0
	}
	high, low := bits.Mul64(grains, uint64(math.Pow10(file-digits)))
	if high > 0 {
		return math.MaxUint64, false
	}
	return low, false
}
