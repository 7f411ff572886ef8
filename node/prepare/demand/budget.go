package demand

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/protocol/coin"
)

// ErrBudget is returned when the budget cannot pay for the job.
var ErrBudget = errors.New("budget too small")

// BudgetError says by how much the budget of a job is too small. It is an ErrBudget.
type BudgetError struct {
	// grains of Coin; that the job may cost, and for 10^15 operations; a Price of 0: what the network asks for now
	Budget, Most, Price uint64
	Coin                coin.Coin
}

// Error implements error.
func (e *BudgetError) Error() string {
	at := "the prices that the network asks for now"
	if e.Price > 0 {
		at = e.Coin.Text(e.Price) + " per PFLOP"
	}
	return fmt.Sprintf("%v: it is %s, and the job may cost up to %s at %s", ErrBudget, e.Coin.Text(e.Budget),
		e.Coin.Text(e.Most), at)
}

// Is makes it an ErrBudget.
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// Fix says which budget is enough.
func (e *BudgetError) Fix() string {
	one := uint64(math.Pow10(e.Coin.Digits()))
	return fmt.Sprintf("give --set budget.max_cost=%d, or train fewer steps", e.Most/one+min(e.Most%one, 1))
}
