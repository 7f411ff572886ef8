package owner

import (
	"context"
	"fmt"
	"os"

	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/federated"
	coordinator "github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/wire"
)

// Trainer trains the models of rounds on data of an owner, and writes what it made for anybody to read. It hides
// nothing but the data themselves.
type Trainer struct {
	owner *owner
	first *train.Checkpoint
}

// Public is the trainer of a job whose updates are public. The budget of an owner refuses it: there is no noise.
func Public(ctx context.Context, opt Options) (*Trainer, *federated.Offer, error) {
	o := &owner{Options: opt, client: wire.New(opt.URL, opt.HTTP, opt.Home.Key, opt.Retry, opt.clock())}
	offer, err := o.client.Offer(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := o.compile(offer); err != nil {
		return nil, nil, err
	}
	t := &Trainer{owner: o, first: o.b.Genesis}
	if o.b.Job.Federated.Updates != owners.Public {
		return nil, nil, fmt.Errorf("%w: its updates are %s, and a committee sees them", ErrJob, o.b.Job.Federated.Updates)
	}
	o.use = opt.Home.use(offer.Job().String(), o.b.Job.Name, federated.Spent{})
	return t, offer, opt.Home.allow(o.use, o.b.Spec.Rounds, opt.Budget)
}

// Close ends the trainer.
func (t *Trainer) Close() error { return t.owner.b.Close() }

// Examples is how many the owner has.
func (t *Trainer) Examples() int { return t.owner.b.Corpus.Train.Len() / t.owner.b.Example }

// Train trains a model, by the names of its tensors, in a round, and writes the result into a folder. It returns the
// loss of the last step on the data of the owner.
func (t *Trainer) Train(ctx context.Context, round uint32, model map[string]*tensor.Tensor, dir string) (loss float32,
	err error) {
	base := &train.Checkpoint{Round: round, Names: t.first.Names, Outer: t.first.Outer}
	if base.Params, err = coordinator.Params(t.first, model); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrJob, err)
	}
	r, err := t.owner.run(base, unit{}, func(_ uint32, l float32) error {
		loss = l
		return ctx.Err()
	})
	if err != nil {
		return loss, err
	}
	if r.Diverged != nil {
		return loss, fmt.Errorf("%w: %w", errAlone, r.Diverged)
	}
	made := &train.Checkpoint{Round: round + 1, Names: base.Names, Outer: base.Outer}
	for i, p := range base.Params {
		q := tensor.New(p.Shape)
		for k, x := range p.F32() {
			q.F32()[k] = x - r.Delta[i].F32()[k]
		}
		made.Params = append(made.Params, q)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return loss, err
	}
	if int64(round) > t.owner.use.Last { // a round that is trained again after an interruption is one round
		if err := t.owner.Home.sends(t.owner.use, round); err != nil {
			return loss, err
		}
	}
	return loss, coordinator.Export(t.owner.b, made, dir)
}
