package owner

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/scaffold"
	coordinator "github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/strategy"
)

// unit is the result of the steps of a round, with the control variates that corrected them.
type unit struct {
	update []*tensor.Tensor // of the tensors that owners train in the round
	loss   float32          // of the last step

	mean []*tensor.Tensor // variate, as the coordinator announced it; nil: the job has no control variates
	own  []*tensor.Tensor // variate of the owner when the round began
}

// train computes the unit of a round.
func (o *owner) train(ctx context.Context, a federated.Announcement) (u unit, err error) {
	g := o.b.Genesis
	base := &train.Checkpoint{Round: a.Round, Names: g.Names}
	for _, p := range g.Params {
		base.Params = append(base.Params, tensor.New(p.Shape))
	}
	size := int(o.b.Size().Parameters())
	if o.steers() {
		size, u.mean = 2*size, scaffold.Zeros(g.Params)
		if u.own, err = o.Home.variate(o.use.Job, a, g.Params); err != nil {
			return u, err
		}
	}
	b, err := o.client.Model(ctx, a.Round, size)
	if err != nil {
		return u, err
	}
	if coordinator.WeightsDigest(b) != a.Model {
		return u, fmt.Errorf("%w: other weights than it announced", wire.ErrRefused)
	}
	if err := coordinator.DecodeWeights(b, slices.Concat(base.Params, u.mean)); err != nil {
		return u, fmt.Errorf("%w: %w", wire.ErrRefused, err)
	}
	r, err := o.run(base, u, func(_ uint32, loss float32) error {
		u.loss = loss
		return ctx.Err()
	})
	if err != nil {
		return u, err
	}
	if r.Diverged != nil {
		return u, fmt.Errorf("%w: %w", errAlone, r.Diverged)
	}
	for _, i := range federated.Turn(base.Names, a.Round) {
		u.update = append(u.update, r.Delta[i])
	}
	return u, nil
}

// steers reports whether the owner corrects its steps by control variates.
func (o *owner) steers() bool { return o.b.Job.Federated.Method == owners.Scaffold }

// run takes the steps of a round: with noise for examples or control variates if the job asks for them, and of an
// adapter for the factor whose turn it is.
func (o *owner) run(base *train.Checkpoint, u unit,
	observe func(step uint32, loss float32) error) (*train.Result, error) {
	noise := o.b.Job.Federated.ExampleNoise.On()
	if whole := len(federated.Turn(base.Names, base.Round)) == len(base.Names); whole && !noise && !o.steers() {
		return o.task.Run(base, 0, nil, observe)
	}
	d, err := descent.New(o.b.Step, strategy.Optimizer(o.b.Job.Spec), func(name string) bool {
		return federated.Trains(name, base.Round)
	}, o.b.Frozen, o.Threads)
	if err != nil {
		return nil, err
	}
	if !noise {
		if o.steers() {
			d.Steer = scaffold.Steer(u.mean, u.own)
		}
		return o.task.RunOn(d, base, 0, observe)
	}
	var seed prg.Key
	_, _ = rand.Read(seed[:]) // never fails
	x, err := dpsgd.New(d, o.terms(), rows{o.b}, seed)
	if err != nil {
		return nil, err
	}
	return o.task.RunOn(x, base, 0, observe)
}

// next returns the variates that the owner keeps when it sends the vector of a round; nil: the job has none. The new
// variate is computed from the update as it is in the vector: clipped, and rounded to the grid. It is the old one if
// all learning rates of the round are 0.
func (o *owner) next(a federated.Announcement, u unit, values []uint32) (*kept, error) {
	if !o.steers() {
		return nil, nil
	}
	rates, k := scaffold.Rates(o.b.Spec, a.Round), &kept{since: a.Since, counted: a.Counted, now: u.own, next: u.own}
	if rates == 0 {
		return k, nil
	}
	var shapes []tensor.Shape
	for _, t := range u.update {
		shapes = append(shapes, t.Shape)
	}
	sent, err := fixedpoint.Mean(values, o.b.Job.Federated.Clip, shapes)
	if err != nil {
		return nil, err
	}
	k.next = scaffold.Next(u.own, u.mean, sent, rates)
	return k, nil
}

// rows are the examples of an owner.
type rows struct{ b *prepare.CompiledJob }

// Len implements dpsgd.Examples.
func (r rows) Len() int { return r.b.Corpus.Train.Len() / r.b.Example }

// Row implements dpsgd.Examples.
func (r rows) Row(i int, into []int32) {
	r.b.Corpus.Train.CopyTo(into, i*r.b.Example)
}
