package spending

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/failure"
)

// AskTimeout is how long the network may take to answer a question about the account.
const AskTimeout = 10 * time.Second

// Wallet is the account that pays for jobs on a network.
type Wallet struct {
	Chain   *client.Client
	Network string // HTTP interface of a validator
}

// Has is what the account has of ZEN and of other coins.
func (w Wallet) Has(ctx context.Context, others ...coin.Coin) (Amounts, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	free := Amounts{}
	for _, c := range append(others, coin.Coin{}) {
		grains, err := w.Chain.Coins.Holds(ctx, w.Chain.Address(), c)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return nil, err
		}
		free[c.Symbol], _ = coins.Millionths(c, grains)
	}
	return free, nil
}

// Send is the command that sends an amount to the account of the server.
func (w Wallet) Send(symbol string, amount uint64) string {
	return fmt.Sprintf("starling account send %s %s%s --network %s --home DIR", w.Chain.Address(),
		Millionths(symbol).Amount(amount), symbol, w.Network)
}

// CoinOf is the coin of a budget, or why the network takes no order with it: a failure.Error, unless the network does
// not answer.
func (w Wallet) CoinOf(ctx context.Context, b spec.Budget) (coin.Coin, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	c, err := w.Chain.Market.Coin(ctx, b.Coin)
	switch {
	case errors.Is(err, client.ErrNotFound), err == nil && c.Closed:
		return c.Coin, failure.New(http.StatusUnprocessableEntity, "COIN_NOT_TAKEN",
			fmt.Sprintf("the network takes no new orders in the coin %s", b.Coin),
			"name one that starling market coins --network "+w.Network+" lists as budget.coin, or leave it out for ZEN")
	case err != nil:
		return c.Coin, err
	}
	if _, err := coins.Grains(c.Coin, uint64(b.MaxCost)); err != nil {
		return c.Coin, failure.New(http.StatusUnprocessableEntity, "COIN_NOT_TAKEN", "budget.max_cost: "+err.Error(),
			"give an amount that the coin can have")
	}
	return c.Coin, nil
}

// Short says which coins a job waits for.
func (w Wallet) Short(symbol string, need, free, locked Amounts, returns bool) *api.Reason {
	text := Millionths(symbol).Text
	why := &api.Reason{Code: "budget", Text: fmt.Sprintf("the account %s has %s free and %s in jobs; the job needs %s, "+
		"for its budget and fees", w.Chain.Address(), text(free[symbol]), text(locked[symbol]), text(need[symbol]))}
	why.Next = w.Send(symbol, need[symbol]-min(need[symbol], free[symbol]))
	if returns {
		why.Next = "it begins when other jobs are over, or with more coins: " + why.Next
	}
	return why
}
