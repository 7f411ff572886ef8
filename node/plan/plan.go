// Package plan says what a job will take, before it runs: time, memory, disk, traffic and price, on this machine or on
// a network. It starts nothing and locks no coins.
package plan

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/losses"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/cut"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/prepare/storage"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/role/bundle"
)

// ErrPlanStale is returned for a job that is another than the one that was planned.
var ErrPlanStale = errors.New("the job is another than the one that was planned")

// Plan is what a job will take, before anything is started.
type Plan struct {
	// of the plan; it begins with that of the job, and another budget, or other audits, have another
	ID         string `json:"id"`
	Name       string `json:"name"`
	Parameters int    `json:"parameters"`
	Tokens     uint64 `json:"tokens"` // trained on, all workers together
	Steps      int    `json:"steps"`
	Rounds     int    `json:"rounds"`
	Workers    int    `json:"workers"`
	Flops      uint64 `json:"flops"`     // of all units once, at most the largest number
	Most       uint64 `json:"most_uzen"` // that it may cost, with every unit audited
	// of Most, that is expected to be paid: with as many audits as workers have that no run has seen
	Expected uint64    `json:"expected_uzen"`
	Budget   uint64    `json:"budget_uzen"`     //
	Stakes   Bonds     `json:"stakes"`          // that members must have
	Coin     coin.Coin `json:"coin,omitzero"`   // of cost, budget and stakes, in its grains; absent: ZEN
	StepTime float64   `json:"step_seconds"`    // of one inner step of one worker, measured here
	Seconds  float64   `json:"seconds"`         // of training if this machine does all of it; 0: it waits for others
	Memory   uint64    `json:"memory_bytes"`    // of one worker
	Disk     int64     `json:"disk_bytes"`      // that one worker must have; without a network: all parties
	FreeDisk int64     `json:"free_disk_bytes"` // that parties of an embedded network may fill; 0: not known
	Received int64     `json:"round_bytes"`     // that a worker receives in a round
	Begin    int64     `json:"begin_bytes"`     // that it receives before: the first checkpoint, and a base model
	Executor string    `json:"executor"`        // that takes the steps: builtin or torch
	Notes    []string  `json:"notes"`           // settings without effect, and the loss that the strategy costs

	Placement *api.Placement `json:"placement"` // without a network: this machine
	Quote     *Quote         `json:"quote"`     // on a network: who would be taken, and why others would not

	Work *Work `json:"work,omitempty"` // what the seconds consist of

	Stages []cut.Stage `json:"stages,omitempty"` // of the model, if it is cut

	parties    int     // of an embedded network that compute
	all        uint64  // bytes of memory that they take together
	evalTime   float64 // seconds of the evaluation of one batch
	outerState int     // tensors of the outer optimizer for a parameter
}

// PlanJob makes a job ready, measures an inner step, and starts nothing.
// network is the HTTP interface of a validator, which is asked who would train it, or "".
func PlanJob(ctx context.Context, j *job.Job, network string) (*Plan, error) {
	if err := inNumerics(ctx, j, network); err != nil {
		return nil, err
	}
	b, err := prepare.Outline(j)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	p, err := Of(b)
	if err != nil {
		return nil, err
	}
	if err := p.MeasureStep(b); err != nil {
		return nil, err
	}
	if network == "" {
		return p, p.PlaceHere(b)
	}
	if p.Quote, err = QuoteOf(b, ctx, network); err == nil {
		p.In(p.Quote)
	}
	return p, err
}

// In states the plan in the coin of an order in another coin than ZEN, at the highest price that it pays: that at which
// members would be drawn, or, if it would wait, the most that it allows.
func (p *Plan) In(q *Quote) {
	if q.Coin.Own() {
		return
	}
	o, price := q.order, q.order.PriceCap
	if q.Matched {
		price = max(q.Work, q.Audit, q.Draw)
	}
	p.Expected, p.Most = costs(o, price)
	p.Coin, p.Budget, p.Stakes = q.Coin, o.Budget, bonds(o, price)
}

// costs are the amounts that a run at a price is expected to cost, and that it costs if every unit is audited.
func costs(o market.Order, price uint64) (expected, most uint64) {
	round, most := cost.Quote(o.Terms, price, o.Verifiers)
	work := cost.Units(o.Terms, price, price)
	audited := float64(round-min(work, round)) * audits(o.Terms.AuditPPM, int(o.Terms.Rounds))
	return min(cost.Add(cost.Multiply(work, uint64(o.Terms.Rounds)), uint64(audited)), most), most
}

// FitsDisk reports whether this machine has the disk for a job; a disk of which nothing is known has it.
func (p *Plan) FitsDisk() bool { return p.FreeDisk == 0 || p.Disk <= p.FreeDisk }

// PlaceHere says how long this machine takes if it does everything, as Train lets it, and whether it has the
// memory and the disk.
func (p *Plan) PlaceHere(b *prepare.CompiledJob) error {
	o, err := b.LocalOrder()
	if err != nil {
		return err
	}
	if p.StepTime > 0 {
		w := p.work(b, o)
		p.Work, p.Seconds = &w, w.Seconds()
	}
	d, err := storage.Here(b, o.Terms, member.DefaultKeep, p.parties)
	if err != nil {
		return err
	}
	p.Disk = d.In(math.MaxInt64)
	if free, ok := storage.Room(b.Job.Output.Dir); ok {
		p.FreeDisk, p.Disk = free, d.In(free)
	}
	p.Placement = &api.Placement{Workers: prepare.Workers(b), Verifiers: int(o.Verifiers), Fits: "unknown"}
	p.Placement.MemoryBytes = p.all
	available, _, ok := memory.Available()
	if !ok {
		return nil
	}
	p.Placement.FreeBytes, p.Placement.Fits = available, "yes"
	if available < p.Placement.MemoryBytes {
		p.Placement.Fits = "no"
	}
	return nil
}

// Of is what a job will take as far as nothing has to be tried or asked for it.
func Of(b *prepare.CompiledJob) (*Plan, error) {
	o, err := b.LocalOrder()
	if err != nil {
		return nil, err
	}
	price := demand.LocalPrice(o)
	expected, most := costs(o, price)
	j, s := b.Job, b.Spec
	p := &Plan{
		ID: b.PlanID(), Name: j.Name, Parameters: b.Model.Parameters(), Tokens: b.Tokens(j.Training.MaxSteps),
		Steps:  j.Training.MaxSteps,
		Rounds: int(s.Rounds), Workers: j.Strategy.Workers.Target, Flops: o.Terms.Flops(),
		Expected: expected, Most: most, Budget: o.Budget, Stakes: bonds(o, price),
		Disk: bundle.Footprint(s, b.Step, b.Manifest, o.Terms, member.DefaultKeep), Executor: j.Executor,
		Notes: []string{}, parties: int(s.Units) + int(o.Verifiers),
	}
	for _, n := range j.Notes {
		p.Notes = append(p.Notes, n.Place+": "+n.Text)
	}
	if cost := losses.Of(b); cost != nil && cost.Loss > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("strategy: a run like this ended %.1f %% above the loss of data-parallel "+
			"training (%s); starling sim --advise compares strategies", 100*cost.Loss, cost.Source))
	}
	if p.outerState, err = outer.State(b.Exchange()); err != nil {
		return nil, err
	}
	p.Begin = b.Size().Parameters()*int64(1+p.outerState) + b.Size().Frozen()
	if p.Stages, err = cut.Stages(s, b.Step); err != nil {
		return nil, err
	}
	if s.Pipeline != nil { // of the other stages too, which a worker has no memory for
		p.Disk += bundle.Planned(s, b.Step, b.Manifest).Aside()
	}
	p.Received, err = b.Size().Traffic()
	return p, err
}
