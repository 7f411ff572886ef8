package demand

import (
	"errors"
	"fmt"
)

// ErrBudget is returned when the budget cannot pay for the job.
var ErrBudget = errors.New("budget too small")

// BudgetError says by how much the budget of a job is too small. It is an ErrBudget.
type BudgetError struct {
	// uzen; that the job may cost, and for 10^15 operations; a Price of 0: what the network asks for now
	Budget, Most, Price uint64
}

// Error implements error.
func (e *BudgetError) Error() string {
	at := "the prices that the network asks for now"
	if e.Price > 0 {
		at = fmt.Sprintf("%.6g ZEN per PFLOP", float64(e.Price)/1e6)
	}
	return fmt.Sprintf("%v: it is %.6g ZEN, and the job may cost up to %.6g ZEN at %s", ErrBudget, float64(e.Budget)/1e6,
		float64(e.Most)/1e6, at)
}

// Is makes it an ErrBudget.
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// Fix says which budget is enough.
func (e *BudgetError) Fix() string {
	return fmt.Sprintf("give --set budget.max_cost=%d, or train fewer steps", (e.Most+999_999)/1_000_000)
}
