package bundle

import (
	"context"
	"fmt"

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
	return LoadCheckpointEach(ctx, name, get, checkpoint.InTurn)
}

// LoadCheckpointEach is LoadCheckpoint with get called as each says, some calls at the same time.
func LoadCheckpointEach(ctx context.Context, name terms.Checkpoint, get func(context.Context, blob.CID) ([]byte, error),
	each checkpoint.Each) (*train.Checkpoint, error) {
	id, err := blob.Parse(name.CID)
	if err != nil {
		return nil, err
	}
	m, tensors, err := checkpoint.Load(ctx, get, each, id)
	if err != nil {
		return nil, err
	}
	c := &train.Checkpoint{Round: m.Round}
	for _, t := range m.Tensors {
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
	if c.Round != name.Round || c.Root() != name.Root {
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
	root := c.Root()
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
	id, err := checkpoint.Save(ctx, store, checkpoint.Manifest{Job: jobID, Round: c.Round, StateRoot: root}, names,
		tensors)
	if err != nil {
		return terms.Checkpoint{}, err
	}
	return terms.Checkpoint{Round: c.Round, Root: root, CID: id.String()}, nil
}
