package held

import (
	"context"
	"errors"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// Versions is how a checkpoint is got as patches from one that is held; a weights.Exchange.
type Versions interface {
	bundle.Bringer
	// Continue is called with each version that was made from one that is held.
	Continue(from, to patch.Version)
	// Serve has patches between the versions of a source made for others, until stop.
	Serve(s weights.Source) (stop func())
}

// Exchange has checkpoints come as patches, where that is fewer bytes, and stored under the name of the job; and serves
// patches between those that are held, until stop. It is called before anything is loaded.
func (k *Checkpoints) Exchange(v Versions, store blob.Store, job string) (stop func()) {
	k.versions = v
	k.save = func(ctx context.Context, c *train.Checkpoint) (terms.Checkpoint, error) {
		return bundle.SaveCheckpoint(ctx, store, job, c)
	}
	return v.Serve(k)
}

// Versions implements weights.Source.
func (k *Checkpoints) Versions() (list []patch.Version) {
	k.Recent.Each(func(name terms.Checkpoint, c *train.Checkpoint) { list = append(list, bundle.Version(name, c)) })
	return list
}

// HoldNext holds the checkpoint that another leads to.
func (k *Checkpoints) HoldNext(name terms.Checkpoint, base *train.Checkpoint, then terms.Checkpoint,
	next *train.Checkpoint) {
	k.Hold(then, next)
	if k.versions != nil {
		k.versions.Continue(bundle.Version(name, base), bundle.Version(then, next))
	}
}

var errNoVersion = errors.New("engine: no checkpoint is held from which patches could lead to another")

// bring gets a checkpoint by patches from the latest one before it that is held, and stores it.
func (k *Checkpoints) bring(ctx context.Context, name terms.Checkpoint, holders []string) error {
	if k.versions == nil {
		return errNoVersion
	}
	var from terms.Checkpoint
	var before *train.Checkpoint
	k.Recent.Each(func(n terms.Checkpoint, c *train.Checkpoint) {
		if n.Round <= name.Round && (before == nil || n.Round > from.Round) {
			from, before = n, c
		}
	})
	if before == nil {
		return errNoVersion
	}
	c, err := bundle.Bring(ctx, k.versions, from, before, name, holders, k.Room)
	if err != nil {
		return err
	}
	saved, err := k.save(ctx, c)
	if err != nil {
		return err
	}
	if saved != name {
		return errors.New("engine: the patched checkpoint is stored under another name")
	}
	k.Hold(name, c)
	return nil
}
