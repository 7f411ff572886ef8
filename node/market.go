package node

import (
	"context"
	"math"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

// conditioned adds to the order of a job what it asks of the machines of a network, at a height. Blocks are taken to be a
// second apart.
func (b *Blueprint) conditioned(o market.Order, height int64) market.Order {
	r, budget := b.Job.Resources, b.Job.Budget
	p := r.Placement
	c := market.Conditions{
		Memory: leastMemory(r.AnyOf), Upload: uint64(r.Bandwidth) / 1000, Regions: p.Regions, NotRegions: p.Exclude,
		Jurisdictions: p.Jurisdictions, NotJurisdictions: p.ExcludeJurisdictions, Attested: r.Attested,
		Domains: uint32(p.FailureDomains), Hourly: uint64(budget.MaxPricePerHour),
	}
	c.Tier, _ = registry.ParseTier(r.Tier) // checked with the job file
	for _, name := range r.Classes {
		class, _ := registry.ParseClass(name)
		c.Classes = append(c.Classes, class)
	}
	o.Conditions, o.Near, o.Data = c, p.Near, b.Spec.Data.String()
	if budget.OnExceed == "pause" {
		o.OnExceed = market.PauseExceeded
	}
	o.SharesPPM = uint32(math.Round(budget.ContributorPart * 1e6))
	if d := time.Duration(budget.Deadline); d > 0 {
		o.Deadline = height + int64(d/time.Second)
	}
	return o
}

// leastMemory is the smallest that one of the acceptable machines has, in MiB.
func leastMemory(machines []job.Machine) (mib uint64) {
	for i, m := range machines {
		if size := uint64(m.Memory) >> 20; i == 0 || size < mib {
			mib = size
		}
	}
	return mib
}

// Quote is what would become of a job on a network now.
type Quote struct {
	Job     string        `json:"job"`
	Matched bool          `json:"matched"`
	Why     market.Reason `json:"why,omitempty"`     // it would wait
	Round   uint64        `json:"round_uzen"`        // at most
	Likely  uint64        `json:"likely_uzen"`       // with as many audits as its rate draws
	Whole   uint64        `json:"whole_uzen"`        // at most, with every unit audited
	Budget  uint64        `json:"budget_uzen"`       //
	Seconds uint64        `json:"seconds,omitempty"` // of training, at the measured rates; 0: a machine was never measured
	Members []Quoted      `json:"members"`
	Others  []Quoted      `json:"others"` // offers that would not be taken
}

// Quoted is an offer, and why it would not be taken.
type Quoted struct {
	ID     string        `json:"id"`
	Role   string        `json:"role"`
	Price  uint64        `json:"price"` // uzen per 10^15 floating-point operations
	Class  string        `json:"class,omitempty"`
	Region string        `json:"region,omitempty"`
	Why    market.Misfit `json:"why,omitempty"`
	Text   string        `json:"text,omitempty"`
}

// QuoteJob asks a network what would become of a job. Nothing is ordered.
func QuoteJob(ctx context.Context, j *job.Job, network string) (*Quote, error) {
	b, err := NewBlueprint(j)
	if err != nil {
		return nil, err
	}
	return b.quote(ctx, network)
}

func (b *Blueprint) quote(ctx context.Context, network string) (*Quote, error) {
	o, err := b.order()
	if err != nil {
		return nil, err
	}
	c, h, err := ask(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	o = b.conditioned(o, h.Height)
	o.Consumer, o.At, o.Terms.SpecCID, o.Terms.Genesis = "quote", h.Height, "quote", run.Checkpoint{Root: b.Spec.Digest(), CID: "quote"}
	e, err := c.Estimate(ctx, o)
	if err != nil {
		return nil, err
	}
	q := &Quote{Job: b.Job.Name, Matched: e.Why == market.Matched, Why: e.Why, Round: e.Round, Likely: e.Likely, Whole: e.Whole, Budget: o.Budget, Seconds: e.Seconds}
	for _, m := range e.Lease.Members {
		q.Members = append(q.Members, Quoted{ID: m.ID, Role: m.Role.String(), Price: m.Price})
	}
	for _, p := range e.Passed {
		line := quoted(p.Lot)
		line.Why, line.Text = p.Why, p.Why.Text()
		q.Others = append(q.Others, line)
	}
	return q, nil
}

func quoted(l market.Lot) Quoted {
	return Quoted{ID: l.ID, Role: l.Role.String(), Price: l.Price, Class: l.Class.String(), Region: l.Region}
}

// MarketOffers are the offers of a network as they are matched.
func MarketOffers(ctx context.Context, network string) ([]market.Lot, error) {
	c, _, err := ask(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Lots(ctx)
}

// MarketOrders are the open orders of a network.
func MarketOrders(ctx context.Context, network string) ([]client.Placed, error) {
	c, _, err := ask(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Orders(ctx)
}
