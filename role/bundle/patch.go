package bundle

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Bringer gets patches from peers; a weights.Exchange.
type Bringer interface {
	Bring(ctx context.Context, from, to canon.Digest, most int64, holders []string,
		apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (weights.Brought, error)
}

// Version is a checkpoint as a version of weights.
func Version(name terms.Checkpoint, c *train.Checkpoint) patch.Version {
	return patch.Version{Name: patch.Name{Round: name.Round, Root: name.Root}, Tensors: c.Tensors()}
}

// Bring makes a checkpoint from an earlier one by patches of fewer bytes than its tensors. room gives the places of the
// tensors of one checkpoint, or nil. The result of each patch has the root that the patch names, and the last root is
// that in name. An error is a reason to fetch the checkpoint whole.
func Bring(ctx context.Context, from Bringer, has terms.Checkpoint, before *train.Checkpoint, name terms.Checkpoint,
	holders []string, room func() func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	at, whole := Version(has, before), int64(0)
	for _, t := range at.Tensors {
		whole += int64(t.Shape.Bytes())
	}
	_, err := from.Bring(ctx, has.Root, name.Root, whole-1, holders,
		func(h *patch.Head, get func(i int) ([]byte, error)) error {
			tensors, err := h.Apply(at, get, room())
			if err != nil {
				return err
			}
			if root := train.CheckpointRoot(h.To.Round, train.Roots(tensors)); root != h.To.Root {
				return fmt.Errorf("engine: a patch leads to root %s, and not to %s of checkpoint %d", root.Short(),
					h.To.Root.Short(), h.To.Round)
			}
			at = patch.Version{Name: h.To, Tensors: tensors}
			return nil
		})
	switch {
	case err != nil:
		return nil, err
	case at.Name.Root != name.Root || at.Name.Round != name.Round:
		return nil, fmt.Errorf("engine: patches lead to checkpoint %d, and not to %d", at.Name.Round, name.Round)
	}
	n := len(before.Params)
	c := &train.Checkpoint{Round: name.Round, Names: before.Names, Params: at.Tensors[:n:n]}
	for k := range before.Outer {
		c.Outer = append(c.Outer, at.Tensors[(k+1)*n:(k+2)*n:(k+2)*n])
	}
	return c, nil
}
