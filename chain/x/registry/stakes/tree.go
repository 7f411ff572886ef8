// Package stakes stores the stakes of verifiers so that a draw in proportion to them takes few steps, however many
// there are. It decides neither which accounts are verifiers nor what a draw is for.
package stakes

import (
	"context"
	"errors"
	"math/bits"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/chain/adapter"
)

// seat is the place of a verifier in the tree of stakes, from 1, and its stake in the tree.
type seat struct {
	At    uint64 `cbor:"1,keyasint"`
	Stake uint64 `cbor:"2,keyasint"`
}

// Tree stores the stakes of verifiers as a Fenwick tree: node n holds the sum of the weights of the places above n
// minus the lowest bit of n, up to n. A draw or a change takes as many steps as the number of verifiers has bits.
type Tree struct {
	seats  collections.Map[string, seat]
	ids    collections.Map[uint64, string] // by place
	sums   collections.Map[uint64, uint64] // sum of each node
	places collections.Item[uint64]        // number of places
}

// New returns a tree inside the store of the module.
func New(b *collections.SchemaBuilder) Tree {
	return Tree{
		seats: collections.NewMap(b, collections.NewPrefix(16), "seats", collections.StringKey, adapter.Record[seat]()),
		ids:   collections.NewMap(b, collections.NewPrefix(17), "ids", collections.Uint64Key, collections.StringValue),
		sums: collections.NewMap(b, collections.NewPrefix(18), "sums", collections.Uint64Key,
			collections.Uint64Value),
		places: collections.NewItem(b, collections.NewPrefix(19), "places", collections.Uint64Value),
	}
}

// Weigh sets the weight of a verifier.
func (t Tree) Weigh(ctx context.Context, id string, weight uint64) error {
	at, err := t.seats.Get(ctx, id)
	switch {
	case errors.Is(err, collections.ErrNotFound):
		if weight == 0 {
			return nil
		}
		if at.At, err = t.grow(ctx, id); err != nil {
			return err
		}
	case err != nil || at.Stake == weight:
		return err
	}
	last, err := t.Last(ctx)
	if err != nil {
		return err
	}
	for n := at.At; n <= last; n += n & -n {
		sum, err := t.sum(ctx, n)
		if err != nil {
			return err
		}
		if err := t.sums.Set(ctx, n, sum-at.Stake+weight); err != nil {
			return err
		}
	}
	at.Stake = weight
	return t.seats.Set(ctx, id, at)
}

// grow gives a verifier the place after the last.
func (t Tree) grow(ctx context.Context, id string) (uint64, error) {
	last, err := t.Last(ctx)
	if err != nil {
		return 0, err
	}
	at, sum := last+1, uint64(0)
	for n := last; n > at-at&-at; n -= n & -n { // the nodes that the new node covers
		below, err := t.sum(ctx, n)
		if err != nil {
			return 0, err
		}
		sum += below
	}
	return at, errors.Join(t.sums.Set(ctx, at, sum), t.ids.Set(ctx, at, id), t.places.Set(ctx, at))
}

// Last is the number of places.
func (t Tree) Last(ctx context.Context) (uint64, error) { return orZero(t.places.Get(ctx)) }

func (t Tree) sum(ctx context.Context, n uint64) (uint64, error) {
	return orZero(t.sums.Get(ctx, n))
}

func orZero(n uint64, err error) (uint64, error) {
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// At returns the verifier whose stake contains a number below the sum of all stakes.
func (t Tree) At(ctx context.Context, number, last uint64) (string, error) {
	place := uint64(0)
	for bit := uint64(1) << (bits.Len64(last) - 1); bit > 0; bit >>= 1 {
		if place+bit > last {
			continue
		}
		sum, err := t.sum(ctx, place+bit)
		if err != nil {
			return "", err
		}
		if sum <= number {
			place += bit
			number -= sum
		}
	}
	return t.ids.Get(ctx, place+1)
}

// Total is the sum of all weights.
func (t Tree) Total(ctx context.Context, last uint64) (total uint64, err error) {
	for n := last; n > 0; n -= n & -n {
		sum, err := t.sum(ctx, n)
		if err != nil {
			return 0, err
		}
		total += sum
	}
	return total, nil
}
