package check

import (
	"context"
	"errors"
	"fmt"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/client"
)

// CoinsConserved checks after every block in which something happened, and at the end, that no uzen was made or lost:
// all accounts together hold what the genesis gave them, the account of all stakes holds their sum, and that of all
// budgets what is left of this one.
type CoinsConserved struct{}

// account of a module.
func account(module string) string { return authtypes.NewModuleAddress(module).String() }

// Block implements Checker.
func (m CoinsConserved) Block(w World) error {
	if quiet(w) {
		return nil
	}
	return m.End(w)
}

// End implements Checker.
func (CoinsConserved) End(w World) error {
	ctx, c := context.Background(), w.Chain()
	held, err := w.Balances(ctx)
	if err != nil {
		return err
	}
	var sum uint64
	for _, amount := range held {
		sum += amount
	}
	want := w.Genesis().Minted
	participants, err := c.Registry.Participants(ctx)
	var stakes uint64
	for _, p := range participants {
		stakes += p.Stake
	}
	escrow, failed := c.Market.Escrow(ctx, w.Genesis().Job.ID())
	if errors.Is(failed, client.ErrNotFound) {
		failed = nil
	}
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	switch {
	case sum != want:
		return fmt.Errorf("money: there are %d uzen, the genesis made %d", sum, want)
	case held[account(registry.Name)] != stakes:
		return fmt.Errorf("money: stakes of %d uzen, and %d are held for them", stakes, held[account(registry.Name)])
	case held[account(market.Name)] != escrow.Remaining():
		return fmt.Errorf("money: %d uzen of the budget remain, and %d are held for them", escrow.Remaining(),
			held[account(market.Name)])
	}
	return nil
}
