package node

import (
	"context"
	"fmt"
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
		Machines: machines(r.AnyOf), Disk: uint64(r.Disk) >> 20, Passed: passes(p.MinReputation), Upload: uint64(r.Bandwidth) / 1000, Regions: p.Regions, NotRegions: p.Exclude,
		Jurisdictions: p.Jurisdictions, NotJurisdictions: p.ExcludeJurisdictions, Attested: r.Attested,
		Domains: uint32(p.FailureDomains), Hourly: uint64(budget.MaxPricePerHour),
	}
	c.Tier, _ = registry.ParseTier(r.Tier) // checked with the job file
	for _, name := range r.Classes {
		class, _ := registry.ParseClass(name)
		c.Classes = append(c.Classes, class)
	}
	o.Conditions = c
	if budget.OnExceed == "pause" {
		o.OnExceed = market.PauseExceeded
	}
	o.SharesPPM = uint32(math.Round(budget.ContributorPart * 1e6))
	if d := time.Duration(b.Job.Strategy.RoundTimeout); d > 0 {
		o.Terms.Deadlines.Train = int64(d / time.Second)
	}
	if d := time.Duration(budget.Deadline); d > 0 {
		o.Deadline = height + int64(d/time.Second)
	}
	return o
}

// machines are the acceptable kinds of worker, as the market knows them.
func machines(list []job.Machine) (out []market.Machine) {
	for _, m := range list {
		model, devices := m.Accelerator()
		out = append(out, market.Machine{Memory: uint64(m.Memory) >> 20, Cores: uint32(m.CPUs), Devices: uint32(devices), Model: model})
	}
	return out
}

// ParseAccelerators reads what the owner of a machine says of its accelerators: a model and how many, such as h100:8, or nothing.
func ParseAccelerators(text string) (model string, n uint32, err error) {
	if text == "" {
		return "", 0, nil
	}
	m := job.Machine{Accelerators: text}
	model, devices := m.Accelerator()
	if model == "" || devices < 1 {
		return "", 0, fmt.Errorf("--accelerators %s: write the model and how many there are, such as h100:8", text)
	}
	return model, uint32(devices), nil
}

// passes is how many audits in a row a worker has passed at least whose reputation is so good: of n audits it is n/(n+1).
func passes(reputation float64) uint32 { return uint32(math.Ceil(reputation/(1-reputation) - 1e-9)) }

// Quote is what would become of a job on a network now.
type Quote struct {
	Job     string        `json:"job"`
	Matched bool          `json:"matched"`
	Why     market.Reason `json:"why,omitempty"`         // it would wait
	Round   uint64        `json:"round_uzen"`            // at most, at the highest prices of those who may be drawn
	Likely  uint64        `json:"likely_uzen"`           // with as many audits as its rate draws
	Whole   uint64        `json:"whole_uzen"`            // at most, with every unit audited
	Budget  uint64        `json:"budget_uzen"`           //
	Work    uint64        `json:"work_price,omitempty"`  // that workers would be paid, uzen per 10^15 floating-point operations, as one beacon draws them
	Audit   uint64        `json:"audit_price,omitempty"` // and verifiers
	Seconds uint64        `json:"seconds,omitempty"`     // of training, at the measured rates; 0: a machine was never measured
	Members []Quoted      `json:"members"`               // offers that may be drawn
	Others  []Quoted      `json:"others"`                // offers that cannot be
}

// Quoted is an offer, and how likely it is drawn, or why it cannot be.
type Quoted struct {
	ID     string        `json:"id"`
	Role   string        `json:"role"`
	Price  uint64        `json:"price"` // uzen per 10^15 floating-point operations
	Class  string        `json:"class,omitempty"`
	Region string        `json:"region,omitempty"`
	Odds   float64       `json:"odds,omitempty"` // about
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
	o.At = h.Height
	e, err := c.Estimate(ctx, asIf(o))
	if err != nil {
		return nil, err
	}
	q := &Quote{Job: b.Job.Name, Matched: e.Why == market.Matched, Why: e.Why, Round: e.Round, Likely: e.Likely, Whole: e.Whole, Budget: o.Budget, Seconds: e.Seconds}
	for _, m := range e.Lease.Members {
		if m.Role == run.Worker {
			q.Work = max(q.Work, m.Price)
		} else {
			q.Audit = max(q.Audit, m.Price)
		}
	}
	for _, may := range e.May {
		line := quoted(may.Lot)
		line.Odds = float64(may.PPM) / 1e6
		q.Members = append(q.Members, line)
	}
	for _, p := range e.Passed {
		line := quoted(p.Lot)
		line.Why, line.Text = p.Why, p.Why.Text()
		q.Others = append(q.Others, line)
	}
	return q, nil
}

// asIf is an order with something in place of what is known only when its blobs are stored, which no price depends on.
func asIf(o market.Order) market.Order {
	o.Consumer, o.Terms.SpecCID, o.Terms.Genesis = "quote", "quote", run.Checkpoint{Root: o.Terms.Spec, CID: "quote"}
	return o
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
