package prepare

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
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

// localVerifiers of an embedded network look at its work, unless the job file says how many: they are one owner's, and
// a second one would look at what the first saw.
const localVerifiers = 1

// checksOf are what the job file says about verification.
func checksOf(b *CompiledJob) bundle.Checks {
	c := b.Job.Strategy.Verification.Checks()
	c.Tolerance, c.Slices = Tolerance(b.Job), b.Slices
	return c
}

// Order is what the consumer asks the chain for, but for what is known only once the blobs are stored.
func (b *CompiledJob) Order() (market.Order, error) {
	j := b.Job
	w := j.Strategy.Workers
	return market.Order{
		ID: b.JobID(), Budget: uint64(j.Budget.MaxCost), PriceCap: uint64(j.Budget.MaxPrice),
		Workers:   market.Workers{Min: uint32(w.Min), Target: uint32(w.Target), Max: uint32(w.Max)},
		Verifiers: uint32(j.Strategy.Verification.Verifiers),
		Terms:     bundle.Terms(b.JobID(), b.Spec, b.Step.Flops(), checksOf(b)),
	}, nil
}

// LocalPrice is what the parties of an embedded network ask for in uzen per 10^15 floating-point operations: as much as
// the job pays, at most.
func LocalPrice(o market.Order) uint64 { return min(market.DefaultPrice, o.PriceCap) }

// LocalOrder is the order of a job on an embedded network, with one verifier unless the job file says how many: an
// error that wraps ErrBudget, if the whole job may cost more there than its budget.
func (b *CompiledJob) LocalOrder() (market.Order, error) {
	o, err := b.Order()
	if err != nil {
		return o, err
	}
	if !b.Job.Given("strategy.verification.verifiers") {
		o.Verifiers = localVerifiers
	}
	price := LocalPrice(o)
	if _, whole := market.Quote(o.Terms, price, o.Verifiers); o.Budget < whole {
		return o, &BudgetError{Budget: o.Budget, Most: whole, Price: price}
	}
	return o, nil
}

// Tolerance of a job; zero where its work is exact.
func Tolerance(j *job.Job) terms.Tolerance {
	if j.Training.Numerics != spec.Tolerant {
		return terms.Tolerance{}
	}
	t := j.Strategy.Verification.Tolerance
	return terms.Tolerance{DistancePPM: uint32(t.Distance*1e6 + 0.5), CosinePPM: uint32(t.Cosine*1e6 + 0.5)}
}
