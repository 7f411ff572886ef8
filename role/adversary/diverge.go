package adversary

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// ClaimsDivergence is a worker that says of its units that they diverge, which would end the run.
type ClaimsDivergence struct{}

// Install implements Attack.
func (ClaimsDivergence) Install(c Setup) Step {
	c.Party.Compute = doomsayer{c.Honest}
	return c.Step
}

type doomsayer struct{ Honest }

// Train implements party.Compute.
func (d doomsayer) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	w, err := d.Honest.Train(ctx, name, unit)
	if err != nil {
		return nil, err
	}
	lie := &engine.Work{Commit: w.Commit, Log: w.Log, End: w.End}
	lie.Commit.Update, lie.Commit.UpdateCID, lie.Commit.Bytes = canon.Digest{}, "", 0
	return lie, nil
}

// Oracle implements party.Compute: no payload can be made.
func (d doomsayer) Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	honest, err := d.Honest.Oracle(base, g)
	return unmaking{honest}, err
}

type unmaking struct{ dispute.Oracle }

// Result implements dispute.Oracle.
func (o unmaking) Result(k dispute.Kind) (*canon.Tree, error) {
	t, err := o.Oracle.Result(k)
	if err != nil {
		return nil, err
	}
	return canon.NewTree(make([]canon.Digest, t.Len())), nil
}

// Partial implements dispute.Oracle.
func (o unmaking) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	if c.Kind == dispute.Update {
		return make([]canon.Digest, len(after)), nil
	}
	return o.Oracle.Partial(c, after)
}

// HidesDivergence is a worker that commits to an update of nothing where its unit diverged, to be paid for the rounds
// to come.
type HidesDivergence struct{}

// Install implements Attack.
func (HidesDivergence) Install(c Setup) Step {
	c.Party.Compute = optimist{c.Honest}
	return c.Step
}

type optimist struct{ Honest }

// Train implements party.Compute.
func (o optimist) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	w, err := o.Honest.Train(ctx, name, unit)
	if err != nil || !w.Commit.Diverged() {
		return w, err
	}
	base, err := o.Base(name)
	if err != nil {
		return nil, err
	}
	return o.NewWork(name, unit, o.result(base, w))
}

func (o optimist) result(base *train.Checkpoint, w *engine.Work) *train.Result {
	r := &train.Result{Segments: w.Commit.Segments, Losses: []float32{1}, End: w.End}
	for _, p := range base.Params {
		r.Delta = append(r.Delta, tensor.New(p.Shape))
	}
	return r
}

// Oracle implements party.Compute.
func (o optimist) Oracle(name terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	honest, err := o.Honest.Oracle(name, g)
	if err != nil {
		return nil, err
	}
	base, err := o.Base(name)
	return hopeful{honest, o, base, name, g.Config.Unit}, err
}

type hopeful struct {
	dispute.Oracle
	optimist optimist
	base     *train.Checkpoint
	name     terms.Checkpoint
	unit     uint32
}

// Result implements dispute.Oracle.
func (h hopeful) Result(k dispute.Kind) (*canon.Tree, error) {
	return resultTree(k, h.optimist, h.name, h.unit, h.optimist.result(h.base, &engine.Work{}))
}
