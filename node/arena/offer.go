package arena

import (
	"context"
	"slices"

	"github.com/starling-network/starling/protocol/arena"
)

// Evaluators is the part of a network by which an account becomes an evaluator.
type Evaluators interface {
	Evaluators(ctx context.Context) ([]arena.Evaluator, error)
	Evaluate(ctx context.Context, bond uint64) (uint64, error)
}

// Standing is an account as an evaluator; the zero value if it is none.
func Standing(ctx context.Context, m Evaluators, account string) (arena.Evaluator, error) {
	all, err := m.Evaluators(ctx)
	if i := slices.IndexFunc(all, func(e arena.Evaluator) bool { return e.Account == account }); err == nil && i >= 0 {
		return all[i], nil
	}
	return arena.Evaluator{}, err
}

// Offer makes an account an evaluator that may be drawn, with a bond of some uzen at least. It returns the bond, and
// whether that changed anything.
func Offer(ctx context.Context, m Evaluators, account string, bond uint64) (_ uint64, changed bool, _ error) {
	had, err := Standing(ctx, m, account)
	if err != nil || had.Ready && had.Bond >= bond {
		return had.Bond, false, err
	}
	has, err := m.Evaluate(ctx, bond-min(bond, had.Bond))
	return has, err == nil, err
}
