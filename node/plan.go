package node

import (
	"context"
	"errors"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/role/engine"
)

// ErrPlanStale is returned for a job that is another than the one that was planned.
var ErrPlanStale = errors.New("the job is another than the one that was planned")

// Plan is what a job will take, before anything is started.
type Plan struct {
	ID         string   `json:"id"` // of the job; another job has another
	Name       string   `json:"name"`
	Parameters int      `json:"parameters"`
	Tokens     uint64   `json:"tokens"` // trained on, all workers together
	Steps      int      `json:"steps"`
	Rounds     int      `json:"rounds"`
	Workers    int      `json:"workers"`
	Flops      uint64   `json:"flops"`        // of all units once
	Most       uint64   `json:"most_uzen"`    // that it may cost, with every unit audited
	Budget     uint64   `json:"budget_uzen"`  //
	Stakes     Bonds    `json:"stakes"`       // that members must have
	StepTime   float64  `json:"step_seconds"` // of one inner step of one worker, measured here
	Seconds    float64  `json:"seconds"`      // of training if this machine does all of it; 0: it waits for others
	Memory     uint64   `json:"memory_bytes"` // of one worker
	Disk       int64    `json:"disk_bytes"`   // of one worker's blobs, at most
	Received   int64    `json:"round_bytes"`  // that a worker receives in a round
	Executor   string   `json:"executor"`     // that takes the steps: builtin or torch
	Notes      []string `json:"notes"`        // settings that have no effect

	Placement *api.Placement `json:"placement"` // without a network: this machine
	Quote     *Quote         `json:"quote"`     // on a network: who would be taken, and why others would not
}

// PlanJob makes a job ready, takes an inner step of it to see how long that takes, and starts nothing.
// network is the HTTP interface of a validator, which is asked who would train it, or "".
func PlanJob(ctx context.Context, j *job.Job, network string) (*Plan, error) {
	b, err := NewBlueprint(j)
	if err != nil {
		return nil, err
	}
	p, err := b.plan()
	if err != nil {
		return nil, err
	}
	if err := p.tryStep(b); err != nil {
		return nil, err
	}
	if network == "" {
		return p, p.placeHere(b)
	}
	p.Quote, err = b.quote(ctx, network)
	return p, err
}

// placeHere says how long this machine takes if it does everything, as Train lets it, and whether it has the memory.
func (p *Plan) placeHere(b *Blueprint) error {
	o, err := b.embeddedOrder()
	if err != nil {
		return err
	}
	p.Seconds = p.StepTime * float64(b.Spec.StepsBefore(b.Spec.Units)) * float64(b.Spec.Rounds) * (1 + float64(auditPPM(b.Job.Strategy.Verification))/1e6)
	p.Placement = &api.Placement{Workers: int(b.Spec.Units), Verifiers: int(o.Verifiers), Fits: "unknown"}
	p.Placement.MemoryBytes = p.Memory * uint64(p.Placement.Workers+p.Placement.Verifiers)
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

// plan is what a job will take as far as nothing has to be tried or asked for it.
func (b *Blueprint) plan() (*Plan, error) {
	o, err := b.embeddedOrder()
	if err != nil {
		return nil, err
	}
	_, most := market.Quote(o.Terms, embeddedAsk(o), o.Verifiers)
	j, s := b.Job, b.Spec
	p := &Plan{
		ID: b.JobID(), Name: j.Name, Parameters: b.Model.Parameters(), Tokens: b.tokens(j.Training.MaxSteps), Steps: j.Training.MaxSteps,
		Rounds: int(s.Rounds), Workers: j.Strategy.Workers.Target, Flops: o.Terms.RoundFlops() * uint64(s.Rounds),
		Most: most, Budget: o.Budget, Stakes: bonds(o), Disk: engine.Footprint(s, b.Step, b.Manifest, o.Terms, j.Checkpoint.KeepLast), Executor: j.Executor, Notes: []string{},
	}
	for _, n := range j.Notes {
		p.Notes = append(p.Notes, n.Place+": "+n.Text)
	}
	p.Received, err = b.traffic()
	return p, err
}

// traffic is how many bytes a worker receives in a round.
func (b *Blueprint) traffic() (int64, error) {
	if b.Slices == 0 {
		update, err := b.update()
		return int64(b.Spec.Units-1) * update, err
	}
	t, err := slice.TrafficOf(b.Spec.Exchange.Codec, b.shapes(), int(b.Spec.Units), int(b.Slices))
	return t.Total(), err
}

// update is how many bytes the update of a unit has; of replicas, which exchange other parts in every round, on average.
func (b *Blueprint) update() (int64, error) {
	if b.Spec.Exchange.Replicas() {
		sent, err := outer.Sent(b.Spec, train.Params(b.Step), b.shapes())
		var all int64
		for _, n := range sent {
			all += n
		}
		return all / int64(max(1, len(sent))), err
	}
	whole, err := slice.TrafficOf(b.Spec.Exchange.Codec, b.shapes(), 2, 0) // of the one other worker
	return whole.Updates, err
}

// shapes of the parameters that are trained.
func (b *Blueprint) shapes() (shapes []tensor.Shape) {
	inputs := b.Step.InputShapes()
	for _, name := range train.Params(b.Step) {
		shapes = append(shapes, inputs[train.Param+name])
	}
	return shapes
}

// tryStep takes two inner steps, of which the second counts: the first makes what later ones use again. The memory is that of a
// step, and of the checkpoint that the unit began from.
func (p *Plan) tryStep(b *Blueprint) error {
	exec, err := program.Compile(b.Step, kernel.Cores)
	if err != nil {
		return err
	}
	task := &train.Task{Spec: b.Spec, Step: b.Step, Exec: exec, Corpus: b.Corpus, Frozen: b.Frozen}
	session, err := task.Begin(b.Genesis, 0, nil)
	if err != nil {
		return err
	}
	for range 2 {
		began := time.Now()
		if _, err := session.Advance(); err != nil {
			return err
		}
		p.StepTime = time.Since(began).Seconds()
	}
	p.Memory = uint64(exec.PeakBytes())
	for _, s := range b.shapes() {
		p.Memory += uint64(s.Bytes())
	}
	return nil
}
