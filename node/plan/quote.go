package plan

import (
	"context"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Quote is what would become of a job on a network now.
type Quote struct {
	Job     string        `json:"job"`
	Matched bool          `json:"matched"`
	Why     market.Reason `json:"why,omitempty"` // it would wait
	Round   uint64        `json:"round_uzen"`    // at most, at the highest prices of those who may be drawn
	Likely  uint64        `json:"likely_uzen"`   // with as many audits as its rate draws
	Whole   uint64        `json:"whole_uzen"`    // at most, with every unit audited
	Budget  uint64        `json:"budget_uzen"`   //
	// of all amounts, which are in its grains; absent: ZEN
	Coin coin.Coin `json:"coin,omitzero"`
	// that workers would be paid, uzen per 10^15 floating-point operations, as one beacon draws them
	Work   uint64 `json:"work_price,omitempty"`
	Audit  uint64 `json:"audit_price,omitempty"` // and verifiers
	Draw   uint64 `json:"draw_price,omitempty"`  // and generators
	Wanted uint64 `json:"wanted,omitempty"`      // offers of both roles that it takes to begin, if it would wait
	// of training, at the measured rates; 0: a machine was never measured
	Seconds uint64   `json:"seconds,omitempty"`
	Members []Quoted `json:"members"` // offers that may be drawn
	Others  []Quoted `json:"others"`  // offers that cannot be

	order market.Order
}

// Quoted is an offer, and how likely it is drawn, or why it cannot be.
type Quoted struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Price      uint64          `json:"price"` // grains per 10^15 floating-point operations
	Coin       coin.Coin       `json:"-"`
	Class      string          `json:"class,omitempty"`
	Region     string          `json:"region,omitempty"`
	Likelihood float64         `json:"odds,omitempty"` // about
	Why        market.Mismatch `json:"why,omitempty"`
	Text       string          `json:"text,omitempty"`
}

// QuoteJob asks a network what would become of a job. Nothing is ordered.
func QuoteJob(ctx context.Context, j *job.Job, network string) (*Quote, error) {
	if err := inNumerics(ctx, j, network); err != nil {
		return nil, err
	}
	b, err := prepare.Outline(j)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return QuoteOf(b, ctx, network)
}

// inNumerics gives a job the version of the numerics that a network has in force; "" is no network.
func inNumerics(ctx context.Context, j *job.Job, network string) (err error) {
	if network != "" {
		j.Numerics, err = session.Numerics(ctx, network)
	}
	return err
}

func QuoteOf(b *prepare.CompiledJob, ctx context.Context, network string) (*Quote, error) {
	o, err := b.Order()
	if err != nil {
		return nil, err
	}
	c, h, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	o = demand.Conditioned(b.Job, o, h.Height)
	if o, err = coins.Order(ctx, c.Market, b.Job.Budget.Coin, o); err != nil {
		return nil, err
	}
	o.At = h.Height
	e, err := c.Market.Estimate(ctx, demand.AsIf(o))
	if err != nil {
		return nil, err
	}
	q := &Quote{Job: b.Job.Name, Matched: e.Why == market.Matched, Why: e.Why, Round: e.Round, Likely: e.Likely,
		Whole: e.Whole, Budget: o.Budget, Coin: o.Coin, Seconds: e.Seconds, order: o}
	if !q.Matched {
		q.Wanted = uint64(o.Workers.Min) + uint64(o.Verifiers)
	}
	for _, m := range e.Lease.Members {
		paid := map[crew.Role]*uint64{crew.Worker: &q.Work, crew.Verifier: &q.Audit, crew.Generator: &q.Draw}[m.Class()]
		*paid = max(*paid, m.Price)
	}
	for _, may := range e.May {
		line := quoted(may.Listing, o.Coin)
		line.Likelihood = float64(may.PPM) / 1e6
		q.Members = append(q.Members, line)
	}
	for _, p := range e.Passed {
		line := quoted(p.Listing, o.Coin)
		line.Why, line.Text = p.Why, p.Why.Text()
		q.Others = append(q.Others, line)
	}
	return q, nil
}

// quoted is an offer in the coin of the order; one that does not take it is in the network's own coin.
func quoted(l market.Listing, c coin.Coin) Quoted {
	if l.Denom == "" {
		c = coin.Coin{}
	}
	return Quoted{ID: l.ID, Role: l.Role.String(), Price: l.Price, Coin: c, Class: l.Class.String(), Region: l.Region}
}
