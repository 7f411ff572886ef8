package bundle

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/terms"
)

// LoadCheckpoint reads a checkpoint from the blobs that get returns, and verifies its round and its root.
func LoadCheckpoint(ctx context.Context, name terms.Checkpoint,
	get func(context.Context, blob.CID) ([]byte, error)) (*train.Checkpoint, error) {
	return LoadCheckpointEach(ctx, name, get, checkpoint.InTurn, nil)
}

// LoadCheckpointEach is LoadCheckpoint with get called as each says, some calls at the same time. lay, if it is not
// nil, is given each verified tensor, and the checkpoint has those that it returns.
func LoadCheckpointEach(ctx context.Context, name terms.Checkpoint, get func(context.Context, blob.CID) ([]byte, error),
	each checkpoint.Each, lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	id, err := blob.Parse(name.CID)
	if err != nil {
		return nil, err
	}
	if lay == nil {
		lay = func(t *tensor.Tensor) *tensor.Tensor { return t }
	}
	m, tensors, err := checkpoint.LoadTo(ctx, get, each, id, lay)
	if err != nil {
		return nil, err
	}
	c := &train.Checkpoint{Round: m.Round}
	of := map[string]canon.Digest{} // the roots, which have been verified
	for _, t := range m.Tensors {
		of[t.Name] = t.Root
		if n, ok := parameter(t.Name, train.Param); ok {
			c.Names = append(c.Names, n)
			c.Params = append(c.Params, tensors[t.Name])
		}
	}
	if len(c.Names) == 0 {
		return nil, fmt.Errorf("engine: the blob %s has no parameters", name.CID)
	}
	c.Outer = make([][]*tensor.Tensor, len(m.Tensors)/len(c.Names)-1)
	for k := range c.Outer {
		for _, n := range c.Names {
			u, ok := tensors[train.Outer(k)+n]
			if !ok {
				return nil, fmt.Errorf("engine: checkpoint %d has no outer state %d for %q", name.Round, k, n)
			}
			c.Outer[k] = append(c.Outer[k], u)
		}
	}
	var roots []canon.Digest
	for k := range 1 + len(c.Outer) {
		prefix := train.Param
		if k > 0 {
			prefix = train.Outer(k - 1)
		}
		for _, n := range c.Names {
			roots = append(roots, of[prefix+n])
		}
	}
	if c.Round != name.Round || train.CheckpointRoot(c.Round, roots) != name.Root {
		return nil, fmt.Errorf("engine: the blob %s is not checkpoint %d with root %s", name.CID, name.Round,
			name.Root.Short())
	}
	return c, nil
}

func parameter(name, prefix string) (string, bool) {
	if len(name) > len(prefix) && name[:len(prefix)] == prefix {
		return name[len(prefix):], true
	}
	return "", false
}

// Fits reports why a checkpoint is not one of the task's.
func Fits(c *train.Checkpoint, task *train.Task) error {
	p := task.Step
	if n, err := outer.State(task.Spec.Exchange); err != nil || len(c.Outer) != n {
		return fmt.Errorf("engine: the checkpoint has %d tensors of state for a parameter, which %s has not", len(c.Outer),
			task.Spec.Exchange.Outer)
	}
	shapes := p.InputShapes()
	names := train.Params(p)
	if len(names) != len(c.Names) {
		return fmt.Errorf("engine: the checkpoint has %d parameters, the program %d", len(c.Names), len(names))
	}
	for i, n := range names {
		want := shapes[train.Param+n]
		if c.Names[i] != n || !c.Params[i].Shape.Equal(want) {
			return fmt.Errorf("engine: parameter %d of the checkpoint is not %q %v", i, n, want)
		}
		for k, list := range c.Outer {
			if !list[i].Shape.Equal(want) {
				return fmt.Errorf("engine: outer state %d of %q in the checkpoint is not %v", k, n, want)
			}
		}
	}
	return nil
}

// SaveCheckpoint stores a checkpoint and returns its name.
func SaveCheckpoint(ctx context.Context, store blob.Store, jobID string,
	c *train.Checkpoint) (terms.Checkpoint, error) {
	roots := train.Roots(c.Tensors())
	root := train.CheckpointRoot(c.Round, roots)
	tensors := map[string]*tensor.Tensor{}
	var names []string
	add := func(prefix string, list []*tensor.Tensor) {
		for i, n := range c.Names {
			names = append(names, prefix+n)
			tensors[prefix+n] = list[i]
		}
	}
	add(train.Param, c.Params)
	for k, list := range c.Outer {
		add(train.Outer(k), list)
	}
	id, err := checkpoint.SaveRooted(ctx, store, checkpoint.Manifest{Job: jobID, Round: c.Round, StateRoot: root}, names,
		tensors, roots)
	if err != nil {
		return terms.Checkpoint{}, err
	}
	return terms.Checkpoint{Round: c.Round, Root: root, CID: id.String()}, nil
}
