// Package forecast says what a job on data of owners will take, before it runs: memory, traffic, time and disk of an
// owner and of the coordinator, epsilon and delta, and what each way to add updates costs. It takes a step of training
// and adds drawn updates to measure them; it connects to no owner, and writes no file. Of jobs on a network, node/plan
// says the same.
package forecast

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/homomorphic"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/sums"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
)

// Party is what the job takes of one.
type Party struct {
	Memory   uint64  `json:"memory_bytes"`   // of its process
	Disk     int64   `json:"disk_bytes"`     // that it fills, without data and base model
	Sent     int64   `json:"sent_bytes"`     // bodies of messages in a round
	Received int64   `json:"received_bytes"` // in a round
	Seconds  float64 `json:"seconds"`        // of work in a round, on this machine
}

// Plan is what a job will take.
type Plan struct {
	Name        string             `json:"name"`
	Updates     string             `json:"updates"`
	Rounds      uint32             `json:"rounds"`
	Steps       uint32             `json:"steps"` // of an owner in a round
	Owners      int                `json:"owners"`
	MinCohort   int                `json:"min_cohort"`
	Weights     int                `json:"weights"` // that an owner trains in a round
	StepSeconds float64            `json:"step_seconds"`
	Owner       Party              `json:"owner"`
	Coordinator Party              `json:"coordinator"`
	Seconds     float64            `json:"seconds"` // of all rounds, without the time that messages are under way
	Epsilon     *float64           `json:"epsilon"` // of all data of an owner that sends an update in each round
	Delta       float64            `json:"delta"`
	Example     *federated.Example `json:"example"`
	Ways        []sums.Row         `json:"ways"` // one sum of all owners, in each way
	Others      []Other            `json:"others"`
	Notes       []string           `json:"notes"`
}

// Other is protection that this kind of job does not have.
type Other struct {
	Way  string `json:"way"`
	Does string `json:"does"` // and where it is
}

// others are the ways that a job on private data can ask for elsewhere.
var others = []Other{
	{"attested", "jobs on a network run on hardware that proves its program (docs/security.md); a FederatedJob does not"},
	{"three parties", "shares of a small model answer questions (their price: starling bench privacy); they do not train"},
}

// measuredWeights is the largest update that is added to measure it. The price of a larger one grows with its weights.
const measuredWeights = 1 << 16

// Of is what a compiled job will take. base is the memory of the process before it compiled the job.
func Of(ctx context.Context, b *prepare.CompiledJob, base uint64, progress func(string)) (*Plan, error) {
	f := b.Job.Federated
	if f.Updates == owners.Public {
		return nil, federated.ErrPublic
	}
	p := &Plan{Name: b.Job.Name, Updates: string(f.Updates), Rounds: b.Spec.Rounds, Steps: b.Spec.Steps, Owners: f.Owners,
		MinCohort: f.MinCohort, Weights: federated.Most(b.Genesis), Delta: f.Noise.Delta, Others: others, Notes: []string{}}
	p.Epsilon, p.Example = federated.Privacy(b, p.Rounds)
	if err := p.price(ctx, progress); err != nil {
		return nil, err
	}
	chosen := p.chosen()
	if chosen == nil {
		return nil, homomorphic.Fits(p.Weights + 1)
	}
	if err := p.step(b); err != nil {
		return nil, err
	}
	model := b.Size().Parameters()
	if f.Method == owners.Scaffold {
		model *= 2 // the mean of variates follows
		p.Owner.Disk = b.Size().Parameters()
	}
	p.Owner.Sent, p.Owner.Received = int64(chosen.Sent), int64(chosen.Received)+model
	p.Coordinator.Sent, p.Coordinator.Received = p.Owner.Received*int64(p.Owners), p.Owner.Sent*int64(p.Owners)
	p.Owner.Seconds += float64(p.Steps)*p.StepSeconds + chosen.Owner
	p.Coordinator.Seconds = chosen.Server
	p.Seconds = float64(p.Rounds) * (p.Owner.Seconds + p.Coordinator.Seconds)
	if f.ExampleNoise.On() {
		p.Notes = append(p.Notes, "the time of a step is that without noise for examples, which takes longer")
	}
	if f.Sample < 1 {
		p.Notes = append(p.Notes, fmt.Sprintf("a fraction of %g of the owners is drawn for a round; the figures are of a "+
			"round with all of them", f.Sample))
	}
	return p, p.room(b, base, int64(chosen.Sent))
}

// chosen is the row of the job's own way; nil: its updates are too large for it.
func (p *Plan) chosen() *sums.Row {
	for i := range p.Ways {
		if p.Ways[i].Way == p.Updates {
			return &p.Ways[i]
		}
	}
	return nil
}

// price measures a sum of all owners in each way.
func (p *Plan) price(ctx context.Context, progress func(string)) error {
	measured := min(p.Weights, measuredWeights)
	rows, err := sums.Measure(ctx, sums.Size{Owners: p.Owners, Weights: measured}, progress)
	if err != nil {
		return err
	}
	more, times := p.Weights-measured, float64(p.Weights)/float64(measured)
	for _, r := range rows {
		r.Weights, r.Owner, r.Server = p.Weights, r.Owner*times, r.Server*times
		if r.Way == owners.Encrypted {
			if homomorphic.Fits(p.Weights+1) != nil {
				p.Notes = append(p.Notes, "the update is too large to be encrypted")
				continue
			}
			r.Sent += homomorphic.Size(p.Weights+1) - homomorphic.Size(measured+1)
		} else {
			r.Sent += prepare.BytesOfWeight * more
		}
		p.Ways = append(p.Ways, r)
	}
	return nil
}

// step takes steps of an owner on the sample of the coordinator: the shorter one of the second and the third counts,
// because the first makes parts that later ones use again.
func (p *Plan) step(b *prepare.CompiledJob) error {
	exec, err := b.Spec.Compile(b.Step, kernel.Cores)
	if err != nil {
		return err
	}
	task := prepare.TaskOf(b, exec)
	s, err := task.Begin(b.Genesis, 0, parts.NoAnswers(task.Step))
	if err != nil {
		return err
	}
	for n := range min(3, b.Spec.StepsOf(0)) {
		took, err := sums.Elapsed(func() error {
			_, err := s.Advance()
			return err
		})
		if err != nil {
			return err
		}
		if n < 2 || took < p.StepSeconds {
			p.StepSeconds = took
		}
	}
	return nil
}

// room is what the parties have in memory and on disk: sent are the bytes that an owner sends in a round.
func (p *Plan) room(b *prepare.CompiledJob, base uint64, sent int64) error {
	step, err := cpu.Compile(b.Step, kernel.Cores)
	if err != nil {
		return err
	}
	eval, err := cpu.Compile(b.Eval, kernel.Cores)
	if err != nil {
		return err
	}
	state, err := outer.State(b.Exchange())
	if err != nil {
		return err
	}
	z := b.Size()
	weights, checkpoint := z.Parameters(), z.Parameters()*int64(1+state)
	if b.Job.Federated.Method == owners.Scaffold {
		checkpoint += weights
	}
	owner := int64(prepare.UnitMemory(b, step)) + ownerWeights*weights + sent
	coordinator := eval.PeakBytes() + 2*checkpoint + coordinatorWeights*weights + buffers*int64(p.Owners)*sent
	p.Owner.Memory = base + uint64(owner)
	p.Coordinator.Memory = base + uint64(coordinator)
	p.Coordinator.Disk = 2*checkpoint + weights + z.Frozen() // one checkpoint is written before the other one is removed
	if free, _, ok := memory.Available(); ok && free < p.Coordinator.Memory {
		p.Notes = append(p.Notes, fmt.Sprintf("this machine has %d MB of memory left, too little for the coordinator",
			free/1e6))
	}
	return nil
}

// Vectors of all weights that a party holds besides, and buffers that a vector is read into, which grow as it comes.
const (
	ownerWeights       = 3 // the weights of the round, as bytes and as tensors, and the update
	coordinatorWeights = 3 // the weights as bytes, the sum, and the mean
	buffers            = 2
)
