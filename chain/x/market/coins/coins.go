// Package coins lists the coins in which orders may be placed, in addition to the network's own, as governance
// registered them. It moves none.
package coins

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/coin"
)

// Most is how many coins may be registered.
const Most = 64

// shares begins the denominations of shares of models, which earn revenue for their holders: none pays for an order.
const shares = "model/"

// List is the list of the registered coins.
type List struct {
	coins   collections.Map[string, coin.Registered] // by denomination
	symbols collections.Map[string, string]          // denomination by symbol
}

// New returns a list inside the store of the module.
func New(b *collections.SchemaBuilder) List {
	return List{
		coins: collections.NewMap(b, collections.NewPrefix(11), "coins", collections.StringKey,
			adapter.Record[coin.Registered]()),
		symbols: collections.NewMap(b, collections.NewPrefix(12), "symbols", collections.StringKey,
			collections.StringValue),
	}
}

// Find returns a registered coin by its denomination; "" is the network's own.
func (l List) Find(ctx context.Context, denom string) (coin.Registered, error) {
	if denom == "" {
		return coin.Zen(), nil
	}
	c, err := l.coins.Get(ctx, denom)
	if errors.Is(err, collections.ErrNotFound) {
		return c, fmt.Errorf("%w: %q is not registered", coin.ErrCoin, denom)
	}
	return c, err
}

// Open is Find for a coin that takes new orders.
func (l List) Open(ctx context.Context, denom string) (coin.Registered, error) {
	c, err := l.Find(ctx, denom)
	if err == nil && c.Closed {
		err = fmt.Errorf("%w: %s takes no new orders", coin.ErrCoin, c.Name())
	}
	return c, err
}

// All returns the coins in order of denomination.
func (l List) All(ctx context.Context) (all []coin.Registered, err error) {
	err = l.coins.Walk(ctx, nil, func(_ string, c coin.Registered) (bool, error) {
		all = append(all, c)
		return false, nil
	})
	return all, err
}

// Register adds a coin, or changes its fee for waiting and whether it takes orders.
func (l List) Register(ctx context.Context, c coin.Registered) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := sdk.ValidateDenom(c.Denom); err != nil || c.Denom == adapter.Denom || strings.HasPrefix(c.Denom, shares) {
		return errors.Join(fmt.Errorf("%w: a denomination %q", coin.ErrCoin, c.Denom), err)
	}
	all, err := l.All(ctx)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.Denom == c.Denom {
			if err := c.Follows(other); err != nil {
				return err
			}
			return l.coins.Set(ctx, c.Denom, c)
		}
	}
	if len(all) >= Most {
		return fmt.Errorf("%w: %d are registered, and no more may", coin.ErrCoin, len(all))
	}
	if has, err := l.symbols.Has(ctx, c.Symbol); has || err != nil {
		return errors.Join(fmt.Errorf("%w: the symbol %q is another coin's", coin.ErrCoin, c.Symbol), err)
	}
	return errors.Join(l.coins.Set(ctx, c.Denom, c), l.symbols.Set(ctx, c.Symbol, c.Denom))
}
