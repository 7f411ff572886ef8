package training

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// Admit takes the opening of the work of an order, for gas: all that a referee needs to know of it. It refuses work of
// which a dispute could not be decided, and terms that are not those of the work. An opening is stored once for all
// jobs of the same work, until Forget was called for each of them.
func (k *Keeper) Admit(ctx context.Context, t run.Terms, opening []byte) error {
	work, err := k.work(ctx, t.Spec, opening)
	if err != nil {
		return fmt.Errorf("%w: %w", dispute.ErrWork, err)
	}
	if err := work.Bound(t); err != nil {
		return err
	}
	n, err := k.holders(ctx, t.Spec)
	if err == nil && n == 0 {
		err = k.openings.Set(ctx, t.Spec[:], opening)
	}
	return errors.Join(err, k.held.Set(ctx, t.Spec[:], n+1))
}

// Forget says that one job of the work that was admitted has no disputes any more.
func (k *Keeper) Forget(ctx context.Context, spec canon.Digest) error {
	n, err := k.holders(ctx, spec)
	switch {
	case err != nil || n == 0:
		return err
	case n > 1:
		return k.held.Set(ctx, spec[:], n-1)
	}
	return errors.Join(k.held.Remove(ctx, spec[:]), k.openings.Remove(ctx, spec[:]))
}

// holders counts the jobs that need an opening.
func (k *Keeper) holders(ctx context.Context, spec canon.Digest) (uint64, error) {
	n, err := k.held.Get(ctx, spec[:])
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// admitted is the work with a digest, which an order opened, for gas.
func (k *Keeper) admitted(ctx context.Context, spec canon.Digest) (Case, error) {
	opening, err := k.openings.Get(ctx, spec[:])
	if err != nil {
		return nil, fmt.Errorf("training: the opening of %s: %w", spec.Short(), err)
	}
	return k.work(ctx, spec, opening)
}
