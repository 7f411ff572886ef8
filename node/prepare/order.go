package prepare

import (
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/node/prepare/cut"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/role/bundle"
)

// localVerifiers of an embedded network look at its work, unless the job file says how many: they are one owner's, and
// a second one would look at what the first saw.
const localVerifiers = 1

// checksOf are what the job file says about verification.
func checksOf(b *CompiledJob) bundle.Checks {
	c := b.Job.Strategy.Verification.Checks()
	c.Tolerance, c.Slices = demand.Tolerance(b.Job), b.Slices
	return c
}

// Order is what the consumer asks the chain for, but for what is known only once the blobs are stored.
func (b *CompiledJob) Order() (market.Order, error) {
	j := b.Job
	w, more := j.Strategy.Workers, uint32(j.Rollout.Generators)
	t := bundle.Terms(b.JobID(), b.Spec, parts.Flops(b.Step), checksOf(b))
	t.Rollout = referee.Rollout(b.Spec, b.Step)
	t, err := cut.Terms(t, b.Spec, b.Step)
	return market.Order{
		ID: b.JobID(), Budget: uint64(j.Budget.MaxCost), PriceCap: uint64(j.Budget.MaxPrice),
		Workers:   market.Workers{Min: uint32(w.Min) + more, Target: uint32(w.Target) + more, Max: uint32(w.Max) + more},
		Verifiers: uint32(j.Strategy.Verification.Verifiers),
		Terms:     t, Generators: more,
	}, err
}

// LocalOrder is the order of a job on an embedded network, with one verifier unless the job file says how many: an
// error that wraps demand.ErrBudget, if the whole job may cost more there than its budget.
func (b *CompiledJob) LocalOrder() (market.Order, error) {
	o, err := b.Order()
	if err != nil {
		return o, err
	}
	if !b.Job.Given("strategy.verification.verifiers") {
		o.Verifiers = localVerifiers
	}
	price := demand.LocalPrice(o)
	if _, whole := cost.Quote(o.Terms, price, o.Verifiers); o.Budget < whole {
		return o, &demand.BudgetError{Budget: o.Budget, Most: whole, Price: price}
	}
	return o, nil
}

// Workers is how many the job wants: as many as it has units that learn, and generators.
func Workers(b *CompiledJob) int { return int(b.Spec.Units) + b.Job.Rollout.Generators }
