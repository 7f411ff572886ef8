package order

import (
	"context"
	"errors"

	"github.com/starling-network/starling/client"
)

// Settled reports what an order cost, once it is over for good. One that the network does not have may come in late,
// until a height.
func Settled(ctx context.Context, chain *client.Client, id string, until int64) (spent uint64, over bool) {
	head, err := chain.Ledger.Head(ctx) // first: an order that is not there after it does not come in later
	if err != nil {
		return 0, false
	}
	state, err := chain.Training.Run(ctx, id)
	if err == nil && !state.Over() || err != nil && !errors.Is(err, client.ErrNotFound) {
		return 0, false
	}
	e, err := chain.Market.Escrow(ctx, id)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return 0, head.Height > until
	case err != nil || e.Remaining() > 0:
		return 0, false
	}
	return e.Budget - e.Refunded, true
}

// Open reports whether the network may take further steps of an order.
func Open(ctx context.Context, chain *client.Client, id string) (bool, error) {
	state, err := chain.Training.Run(ctx, id)
	if err == nil {
		return !state.Over(), nil
	}
	if !errors.Is(err, client.ErrNotFound) {
		return false, err
	}
	o, err := chain.Market.PlacedOrder(ctx, id)
	if errors.Is(err, client.ErrNotFound) {
		return false, nil // it was not ordered
	}
	return err == nil && o.Status != "ended", err
}
