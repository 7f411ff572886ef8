package party

import (
	"context"
	"errors"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// Slicing is how a party computes slices of the next checkpoint, and puts it together; an engine.Engine, too.
type Slicing interface {
	Pieces(get func() ([]byte, error)) ([]blob.CID, error)
	Piece(base terms.Checkpoint, u work.Unit, slice int, get func(cid string) ([]byte, error)) ([]*tensor.Tensor, error)
	Reduce(ctx context.Context, base terms.Checkpoint, units work.Units, slice int,
		get func(u work.Unit, cid string) ([]byte, error)) (string, error)
	Join(ctx context.Context, base terms.Checkpoint, get func(slice int) ([]byte, error)) (engine.Advanced, error)
}

// revealed reports whether this party serves an update, with all of its pieces: the index alone it may have from
// another worker, whose unit it has taken over.
func (p *Executor) revealed(ctx context.Context, update blob.CID) (bool, error) {
	ok, err := p.Blobs.Has(ctx, update)
	if err != nil || !ok {
		return false, err
	}
	pieces, err := p.Lineage.Pieces(func() ([]byte, error) { return p.Blobs.Await(ctx, update, nil) })
	if err != nil {
		return false, err
	}
	for _, c := range pieces {
		if ok, err := p.Blobs.Has(ctx, c); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// reduce computes a slice. An update of which that slice cannot be had, or is not what was committed, is reported.
func (p *Executor) reduce(ctx context.Context, a role.Reduce) (string, error) {
	if err := p.load(ctx, a.Base); err != nil {
		return "", err
	}
	units := a.Units
	indexes := make([]found, len(units))
	pieces := p.gather(around(len(units), p.own(units)), func(i int) ([]byte, error) {
		x := &indexes[i]
		x.bytes, x.err = p.update(ctx, units[i].Worker, units[i].Commit)
		cids, err := p.Lineage.Pieces(func() ([]byte, error) { return x.bytes, x.err })
		if err != nil {
			return nil, err
		}
		return p.find(ctx, ctx, cids[a.Part.Slice].String(), units[i].Worker)
	})
	cid, err := p.Lineage.Reduce(ctx, a.Base, units, int(a.Part.Slice), func(u work.Unit, cid string) ([]byte, error) {
		if cid == u.Commit.UpdateCID {
			return indexes[u.Index].bytes, indexes[u.Index].err
		}
		return pieces[u.Index].bytes, pieces[u.Index].err
	})
	return cid, p.missing(ctx, role.Advance{Base: a.Base, Units: a.Units}, a.Part.Slice, err)
}

// probe fetches what another member misses, and reports it, too, if it cannot be had.
func (p *Executor) probe(ctx context.Context, a role.Probe) error {
	switch {
	case a.Unit.Draws:
		return probeAnswers(ctx, p, a)
	case a.Data:
		return probeData(ctx, p, a)
	case a.Unit.Status == work.Auditing: // a stage
		return probeLink(ctx, p, a)
	}
	_, err := p.Lineage.Piece(a.Base, a.Unit, int(a.Unit.Lost),
		func(cid string) ([]byte, error) { return p.find(ctx, ctx, cid, a.Unit.Worker) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, p.Chain.Send(ctx, role.Missing{Work: a.Work, Slice: a.Unit.Lost}))
}

// join puts the slices together. This party computes a slice that is unavailable itself: then it has the slice, or has
// found that the reducers agreed on a wrong one, and contests it.
func (p *Executor) join(ctx context.Context, a role.Advance) (engine.Advanced, error) {
	parts := p.gather(around(len(a.Slices), p.startIndex()), func(slice int) ([]byte, error) {
		var holders []string
		for _, r := range a.Slices[slice].Reducers {
			holders = append(holders, r.Member)
		}
		return p.find(ctx, ctx, a.Slices[slice].CID, holders...)
	})
	next, err := p.Lineage.Join(ctx, a.Base,
		func(slice int) ([]byte, error) { return parts[slice].bytes, parts[slice].err })
	bad, ok := errors.AsType[*engine.BadSlice](err)
	if !ok || ctx.Err() != nil {
		return next, err
	}
	part := role.Part{Round: a.Base.Round, Closed: a.Closed, Slice: uint32(bad.Slice)}
	cid, failed := p.reduce(ctx, role.Reduce{Part: part, Base: a.Base, Units: a.Units})
	if failed == nil && cid != a.Slices[bad.Slice].CID {
		failed = p.Chain.Send(ctx, role.ShowSlice{Part: part, CID: cid})
	}
	return next, errors.Join(err, failed)
}
