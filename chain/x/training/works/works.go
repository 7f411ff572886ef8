// Package works stores the openings of the work of jobs, and opens them for disputes: each is stored once for all jobs
// of the same work. What a work says to a question is the business of its referee.
package works

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Case is the work of one job as a referee knows it.
type Case interface {
	dispute.Referee
	// Bound reports, as an error that wraps refusal.ErrTerms, in what terms are not those of the work.
	Bound(t terms.Terms) error
	// Config is the dispute of a challenger about a unit, in which a party has some blocks for a move.
	Config(job string, d work.AuditTarget, challenger string, blocks int64) (dispute.Config, error)
	// Refute answers what a payload shows: that a checkpoint is not what its updates lead to, or an error.
	Refute(c work.Combination, payload []byte) (string, error)
}

// Referee reads the opening of an order, which anybody may have written: the work with the given digest, or an error if
// that is not what it opens, or a dispute about it could not be decided.
type Referee func(spec canon.Digest, opening []byte) (Case, error)

// Gas of a message that asks a referee, beside that of its bytes: to open the work, which reads and checks a program of
// a stranger, and to answer a question. It is the same whether the work is remembered or not.
const (
	gasOpen  = 2_000_000 // and one for every byte of the opening
	gasJudge = 1_000_000
)

// Works reads and writes the openings of the work of open orders and of runs that are not over.
type Works struct {
	referee  Referee
	cache    cache
	openings collections.Map[[]byte, []byte] // by the digest of the specification
	held     collections.Map[[]byte, uint64] // how many jobs each is of
}

// New returns the works of a store.
func New(b *collections.SchemaBuilder, referee Referee) *Works {
	return &Works{
		referee:  referee,
		openings: collections.NewMap(b, collections.NewPrefix(25), "openings", collections.BytesKey, collections.BytesValue),
		held:     collections.NewMap(b, collections.NewPrefix(26), "held", collections.BytesKey, collections.Uint64Value),
	}
}

// Admit takes the opening of the work of an order, for gas: all that a referee needs to know of it. It refuses work of
// which a dispute could not be decided, and terms that are not those of the work. An opening is stored once for all
// jobs of the same work, until Forget was called for each of them.
func (w *Works) Admit(ctx context.Context, t terms.Terms, opening []byte) error {
	judge, err := w.open(ctx, t.Spec, opening)
	if err != nil {
		return fmt.Errorf("%w: %w", dispute.ErrWork, err)
	}
	if err := judge.Bound(t); err != nil {
		return err
	}
	n, err := w.holders(ctx, t.Spec)
	if err == nil && n == 0 {
		err = w.openings.Set(ctx, t.Spec[:], opening)
	}
	return errors.Join(err, w.held.Set(ctx, t.Spec[:], n+1))
}

// Forget says that one job of the work that was admitted has no disputes any more.
func (w *Works) Forget(ctx context.Context, spec canon.Digest) error {
	n, err := w.holders(ctx, spec)
	switch {
	case err != nil || n == 0:
		return err
	case n > 1:
		return w.held.Set(ctx, spec[:], n-1)
	}
	return errors.Join(w.held.Remove(ctx, spec[:]), w.openings.Remove(ctx, spec[:]))
}

// holders counts the jobs that need an opening.
func (w *Works) holders(ctx context.Context, spec canon.Digest) (uint64, error) {
	n, err := w.held.Get(ctx, spec[:])
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// Admitted is the work with a digest, which an order opened, for gas.
func (w *Works) Admitted(ctx context.Context, spec canon.Digest) (Case, error) {
	opening, err := w.openings.Get(ctx, spec[:])
	if err != nil {
		return nil, fmt.Errorf("training: the opening of %s: %w", spec.Short(), err)
	}
	return w.open(ctx, spec, opening)
}

// open opens the work with a digest, for gas.
func (w *Works) open(ctx context.Context, spec canon.Digest, opening []byte) (Case, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(gasOpen+gasJudge+uint64(len(opening)), "referee")
	sum := canon.Sum("starling/opening/1", opening)
	if judge, ok := w.cache.find(spec, sum); ok {
		return judge, nil
	}
	judge, err := w.referee(spec, opening)
	if err == nil {
		w.cache.add(opened{spec, sum, judge})
	}
	return judge, err
}
