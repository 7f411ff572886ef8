package party

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// unserved are units of a round from a checkpoint whose updates members may keep to themselves.
type unserved struct {
	*Executor
	base terms.Checkpoint
}

// execute executes those units whose updates no member serves, and serves these updates from then on: so members that
// work for several owners can check together a checkpoint that was made of updates which its signers do not serve.
func (e unserved) execute(ctx context.Context, units work.Units) error {
	for _, i := range around(len(units), e.startIndex()) { // each member begins with another unit
		if err := e.executeOne(ctx, units[i]); err != nil {
			return fmt.Errorf("party: unit %d of round %d: %w", units[i].Index, e.base.Round, err)
		}
	}
	return nil
}

// executeOne executes a unit if no member serves its update, and serves the update, if it is the committed one.
func (e unserved) executeOne(ctx context.Context, u *work.Unit) error {
	holders, err := e.Chain.Holders(ctx)
	if err != nil {
		return err
	}
	if e.obtain(ctx, u.Commit.UpdateCID, holders) == nil {
		return nil
	}
	if err := e.begin(ctx, e.base, u.Index, false); err != nil {
		return err
	}
	w, err := e.Compute.Train(ctx, e.base, u.Index)
	switch {
	case err != nil:
		return err
	case w.Commit.UpdateCID != u.Commit.UpdateCID:
		return fmt.Errorf("its execution gives the update %q, its worker %s committed to %s", w.Commit.UpdateCID, u.Worker,
			u.Commit.UpdateCID)
	}
	_, err = e.Blobs.Put(ctx, w.Update)
	return err
}

// obtain makes sure that this party has a blob that it or a holder serves.
func (e unserved) obtain(ctx context.Context, cid string, holders []string) error {
	id, err := blob.Parse(cid)
	if err != nil {
		return err
	}
	if has, err := e.Blobs.Has(ctx, id); err != nil || has {
		return err
	}
	_, err = e.Blobs.Fetch(ctx, id, holders)
	return err
}
