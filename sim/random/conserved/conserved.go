// Package conserved counts the coins of a chain after a block, and compares them with those before.
package conserved

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/sim/random/ask"
)

// Coins are the supplies of the coins of a chain, as they were after the last block that was checked. The zero value
// knows none.
type Coins struct {
	supplies map[string]uint64 // in grains, by denomination, of registered coins
}

// Check returns an error if a module does not hold after the block of a height what it accounts for in any coin, or if
// a registered coin was made or burnt.
func (c *Coins) Check(ctx context.Context, a *app.App, height int64) error {
	at, err := a.CreateQueryContext(height, false)
	if err != nil {
		return err
	}
	all, err := books.Count(ctx, client.New(ask.Connection{App: a, Ctx: at}, wallet.KeyFromSeed([32]byte{})))
	if err != nil {
		return err
	}
	if c.supplies == nil {
		c.supplies = map[string]uint64{}
	}
	for _, b := range all {
		if !b.Balanced() {
			return fmt.Errorf("the books are wrong: %+v", b)
		}
		if b.Module != books.Supply || b.Coin.Own() {
			continue
		}
		if before, known := c.supplies[b.Coin.Denom]; known && before != b.Owed {
			return fmt.Errorf("of %s there were %d grains, and are %d", b.Coin.Name(), before, b.Owed)
		}
		c.supplies[b.Coin.Denom] = b.Owed
	}
	return nil
}
