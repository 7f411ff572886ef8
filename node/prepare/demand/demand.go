// Package demand says what the order of a job asks of a network: its conditions, its prices, and its budget. The order
// itself is made from the compiled job, by node/prepare.
package demand

import (
	"fmt"
	"math"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Conditioned adds to the order of a job what the job asks of the machines of a network, at a height. Blocks are taken
// to be a second apart.
func Conditioned(j *job.Job, o market.Order, height int64) market.Order {
	r, budget := j.Resources, j.Budget
	p := r.Placement
	c := market.Conditions{
		Machines: machines(r.AnyOf), Disk: uint64(r.Disk) >> 20, Passed: passes(p.MinReputation),
		Upload: uint64(r.Bandwidth) / 1000, Regions: p.Regions, NotRegions: p.Exclude,
		Jurisdictions: p.Jurisdictions, NotJurisdictions: p.ExcludeJurisdictions, Attested: r.Attested,
		Domains: uint32(p.FailureDomains), Hourly: uint64(budget.MaxPricePerHour),
	}
	c.Tier, _ = registry.ParseTier(r.Tier) // checked with the job file
	for _, name := range r.Classes {
		class, _ := registry.ParseClass(name)
		c.Classes = append(c.Classes, class)
	}
	o.Conditions, o.Terms.Attested.Required = c, r.Attested
	if budget.OnExceed == "pause" {
		o.OnExceed = market.PauseExceeded
	}
	o.SharesPPM = uint32(math.Round(budget.ContributorPart * 1e6))
	if d := time.Duration(j.Strategy.RoundTimeout); d > 0 {
		o.Terms.Deadlines.Train = int64(d / time.Second)
	}
	if d := time.Duration(budget.Deadline); d > 0 {
		o.Deadline = height + int64(d/time.Second)
	}
	return o
}

// machines are the acceptable kinds of worker, as the market knows them.
func machines(list []spec.Machine) (out []market.Machine) {
	for _, m := range list {
		model, devices := m.Accelerator()
		out = append(out, market.Machine{Memory: uint64(m.Memory) >> 20, Cores: uint32(m.CPUs), Devices: uint32(devices),
			Model: model})
	}
	return out
}

// ParseAccelerators reads what the owner of a machine says of its accelerators: a model and how many, such as h100:8,
// or nothing.
func ParseAccelerators(text string) (model string, n uint32, err error) {
	if text == "" {
		return "", 0, nil
	}
	m := spec.Machine{Accelerators: text}
	model, devices := m.Accelerator()
	if model == "" || devices < 1 {
		return "", 0, fmt.Errorf("--accelerators %s: write the model and how many there are, such as h100:8", text)
	}
	return model, uint32(devices), nil
}

// passes is how many audits in a row a worker has passed at least whose reputation is so good: of n audits it is
// n/(n+1).
func passes(reputation float64) uint32 { return uint32(math.Ceil(reputation/(1-reputation) - 1e-9)) }

// AsIf is an order with placeholders for values that are known once its blobs are stored; no price depends on them.
func AsIf(o market.Order) market.Order {
	o.Consumer, o.Terms.SpecCID, o.Terms.Genesis = "quote", "quote", terms.Checkpoint{Root: o.Terms.Spec, CID: "quote"}
	return o
}

// LocalPrice is what the parties of an embedded network ask for in uzen per 10^15 floating-point operations: as much as
// the job pays, at most.
func LocalPrice(o market.Order) uint64 { return min(market.DefaultPrice, o.PriceCap) }

// Tolerance of a job; zero where its work is exact.
func Tolerance(j *job.Job) terms.Tolerance {
	if j.Training.Numerics != spec.Tolerant {
		return terms.Tolerance{}
	}
	t := j.Strategy.Verification.Tolerance
	return terms.Tolerance{DistancePPM: uint32(t.Distance*1e6 + 0.5), CosinePPM: uint32(t.Cosine*1e6 + 0.5)}
}
