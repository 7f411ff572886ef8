// Package works stores the openings of the work of jobs, once for all jobs of the same work, and opens them for
// disputes. A referee answers questions about a work.
package works

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Case is the work of one job, as a referee knows it.
type Case interface {
	dispute.Referee
	// Bound returns an error that wraps refusal.ErrTerms if the terms are not those of the work.
	Bound(t terms.Terms) error
	// Bases are the digests by which the work names what it is made from: the checkpoint that it starts from, the weights
	// that it reads and does not train, and the manifest of its data. A digest may be zero.
	Bases() []canon.Digest
	// Config returns the dispute of a challenger about a unit, in which a party has a number of blocks for a move.
	Config(job string, d work.AuditTarget, challenger string, blocks int64) (dispute.Config, error)
	// Decidable returns an error unless every dispute about the work can be decided, and the cost of the check. It stops
	// when the cost is more than most.
	Decidable(most uint64) (cost uint64, err error)
	// Refute returns what is wrong with a checkpoint if the payload proves that its updates do not lead to it, or else an
	// error.
	Refute(c work.Combination, payload []byte) (string, error)
}

// Referee opens the work with the given digest. Anyone may have written the opening of an order, so Referee returns an
// error if the opening does not match the digest, and one that wraps market.ErrNumerics if the work does not have the
// given version of the numerics, whether or not this build computes it; 0: the version is not checked.
type Referee func(spec canon.Digest, opening []byte, numerics uint32) (Case, error)

// Gas of a message that asks a referee, in addition to the gas of its bytes: for opening the work, which reads and
// checks an untrusted program, and for answering a question. It is the same whether the work is cached or not.
const (
	gasOpen  = 2_000_000 // plus one per byte of the opening
	gasJudge = 1_000_000
)

// GasCheck is the gas of an order for each unit that Decidable costs.
const GasCheck = 2

// Catalog records the listed works that a job is made from.
type Catalog interface {
	Opened(ctx context.Context, job, consumer string, bases []canon.Digest) error
}

// Works reads and writes the openings of the work of open orders and of runs that are not over.
type Works struct {
	referee  Referee
	catalog  Catalog // nil: there is none
	cache    cache
	openings collections.Map[[]byte, []byte] // by the digest of the specification
	held     collections.Map[[]byte, uint64] // number of jobs that use an opening
}

// New returns Works inside a module's store.
func New(b *collections.SchemaBuilder, referee Referee) *Works {
	return &Works{
		referee:  referee,
		openings: collections.NewMap(b, collections.NewPrefix(25), "openings", collections.BytesKey, collections.BytesValue),
		held:     collections.NewMap(b, collections.NewPrefix(26), "held", collections.BytesKey, collections.Uint64Value),
	}
}

// Connect sets the module of listings.
func (w *Works) Connect(c Catalog) { w.catalog = c }

// Admit stores the opening of the work of an order of a consumer, and consumes gas for opening it. It refuses work
// about which a dispute could not be decided, work in another version of the numerics than the given one, and terms
// that are not its own. All jobs of the same work share one stored opening, until Forget was called for each of them.
func (w *Works) Admit(ctx context.Context, consumer string, t terms.Terms, opening []byte, numerics uint32) error {
	judge, err := w.open(ctx, t.Spec, opening, numerics)
	switch {
	case errors.Is(err, market.ErrNumerics):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", dispute.ErrWork, err)
	}
	if err := decidable(sdk.UnwrapSDKContext(ctx).GasMeter(), judge); err != nil {
		return fmt.Errorf("%w: %w", dispute.ErrWork, err)
	}
	if err := judge.Bound(t); err != nil {
		return err
	}
	if w.catalog != nil {
		if err := w.catalog.Opened(ctx, t.Job, consumer, judge.Bases()); err != nil {
			return err
		}
	}
	n, err := w.holders(ctx, t.Spec)
	if err == nil && n == 0 {
		err = w.openings.Set(ctx, t.Spec[:], opening)
	}
	return errors.Join(err, w.held.Set(ctx, t.Spec[:], n+1))
}

// decidable checks that every dispute about a work can be decided, and consumes gas for the check, which stops where
// the gas ends.
func decidable(m storetypes.GasMeter, judge Case) error {
	most := m.GasRemaining() / GasCheck
	cost, err := judge.Decidable(most)
	m.ConsumeGas(GasCheck*cost, "referee: check")
	return err
}

// Forget records that one job of an admitted work can have no more disputes.
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

// holders counts the jobs that use an opening.
func (w *Works) holders(ctx context.Context, spec canon.Digest) (uint64, error) {
	n, err := w.held.Get(ctx, spec[:])
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// Admitted opens the work with a digest that an order has opened before, and consumes gas for it.
func (w *Works) Admitted(ctx context.Context, spec canon.Digest) (Case, error) {
	opening, err := w.openings.Get(ctx, spec[:])
	if err != nil {
		return nil, fmt.Errorf("training: the opening of %s: %w", spec.Short(), err)
	}
	return w.open(ctx, spec, opening, 0)
}

// open opens the work with a digest, of the given version of the numerics unless that is 0, and consumes gas for it.
func (w *Works) open(ctx context.Context, spec canon.Digest, opening []byte, numerics uint32) (Case, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(gasOpen+gasJudge+uint64(len(opening)), "referee")
	sum := canon.Sum("starling/opening/1", opening)
	if judge, ok := w.cache.find(spec, sum, numerics); ok {
		return judge, nil
	}
	judge, err := w.referee(spec, opening, numerics)
	if err == nil {
		w.cache.add(opened{spec, sum, numerics, judge})
	}
	return judge, err
}
