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

// Versions is how a checkpoint is got as a patch from one that is held; a weights.Exchange.
type Versions interface {
	bundle.Bringer
	// Serve has patches between the versions of a source made for others, until stop.
	Serve(s weights.Source) (stop func())
}

// Exchange has a checkpoint come as a patch, where that is fewer bytes, stored under the name of the job; and serves
// patches between those that are held, until stop. It is called before anything is loaded.
func (k *Checkpoints) Exchange(v Versions, store blob.Store, job string) (stop func()) {
	k.versions = v
	k.save = func(ctx context.Context, c *train.Checkpoint, name terms.Checkpoint) error {
		return bundle.SaveAs(ctx, store, job, c, name)
	}
	return v.Serve(k)
}

// Versions implements weights.Source.
func (k *Checkpoints) Versions() (list []patch.Version) {
	k.Recent.Each(func(name terms.Checkpoint, c *train.Checkpoint) { list = append(list, bundle.Version(name, c)) })
	return list
}

var errNoVersion = errors.New("engine: no checkpoint is held from which a patch could lead to another")

// bring gets a checkpoint as a patch from the latest one before it that is held, and stores it.
func (k *Checkpoints) bring(ctx context.Context, name terms.Checkpoint, holders []string) error {
	if k.versions == nil {
		return errNoVersion
	}
	var from terms.Checkpoint
	var before *train.Checkpoint
	k.Recent.Each(func(n terms.Checkpoint, c *train.Checkpoint) {
		if n.Round < name.Round && (before == nil || n.Round > from.Round) {
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
	if err := k.save(ctx, c, name); err != nil {
		return err
	}
	k.Hold(name, c)
	return nil
}
