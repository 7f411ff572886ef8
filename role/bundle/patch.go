package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Bringer gets a patch from peers; a weights.Exchange.
type Bringer interface {
	Bring(ctx context.Context, from, to patch.Name, most int64, holders []string,
		apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (bytes int64, err error)
}

// Version is a checkpoint as a version of weights.
func Version(name terms.Checkpoint, c *train.Checkpoint) patch.Version {
	return patch.Version{Name: patch.Name{Round: name.Round, Root: name.Root}, Tensors: c.Tensors()}
}

// Bring makes a checkpoint from an earlier one by a patch of fewer bytes than its tensors. room gives the places of the
// tensors of one checkpoint, or nil. The result has the root in name. An error is a reason to fetch the checkpoint
// whole.
func Bring(ctx context.Context, from Bringer, has terms.Checkpoint, before *train.Checkpoint, name terms.Checkpoint,
	holders []string, room func() func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	at, whole := Version(has, before), int64(0)
	var after []*tensor.Tensor
	for _, t := range at.Tensors {
		whole += int64(t.Shape.Bytes())
	}
	_, err := from.Bring(ctx, at.Name, patch.Name{Round: name.Round, Root: name.Root}, whole-1, holders,
		func(h *patch.Head, get func(i int) ([]byte, error)) error {
			tensors, err := h.Apply(at, get, room())
			if err != nil {
				return err
			}
			if root := train.CheckpointRoot(name.Round, train.Roots(tensors)); root != name.Root {
				return fmt.Errorf("engine: a patch leads to root %s, and not to %s of checkpoint %d", root.Short(),
					name.Root.Short(), name.Round)
			}
			after = tensors
			return nil
		})
	if err != nil {
		return nil, err
	}
	n := len(before.Params)
	c := &train.Checkpoint{Round: name.Round, Names: before.Names, Params: after[:n:n]}
	for k := range before.Outer {
		c.Outer = append(c.Outer, after[(k+1)*n:(k+2)*n:(k+2)*n])
	}
	return c, nil
}

// ErrName says that a checkpoint is stored under another name than the attested one.
var ErrName = errors.New("engine: the patched checkpoint has another name")

// adding is a store that knows which blobs it got and had not.
type adding struct {
	blob.Store
	added []blob.CID
}

func (a *adding) Put(ctx context.Context, data []byte) (blob.CID, error) {
	c := blob.Of(data)
	has, err := a.Has(ctx, c)
	if err != nil {
		return c, err
	}
	if !has {
		a.added = append(a.added, c)
	}
	return a.Store.Put(ctx, data)
}

// SaveAs stores a checkpoint: ErrName if it has another name, and nothing is left of it then, or after another error.
func SaveAs(ctx context.Context, store blob.Store, job string, c *train.Checkpoint, name terms.Checkpoint) error {
	a := &adding{Store: store}
	saved, err := SaveCheckpoint(ctx, a, job, c)
	if err == nil && saved != name {
		err = fmt.Errorf("%w: %s, and not %s", ErrName, saved.CID, name.CID)
	}
	if err != nil {
		for _, c := range a.added {
			_ = store.Delete(context.WithoutCancel(ctx), c)
		}
	}
	return err
}
