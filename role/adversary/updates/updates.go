// Package updates holds workers whose units are right, and that do not serve the updates of these. Package adversary
// has those that change an update or leave a part of it out.
package updates

import (
	"context"
	"sync"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// Hoards is a worker that serves its updates to no party. It computes the units of all workers of a round itself, so
// members that all do so need no update of each other, and make checkpoints that no other party can recompute.
type Hoards struct{}

// Install implements adversary.Attack.
func (Hoards) Install(c adversary.Setup) adversary.Step {
	own := &hoard{Blobs: c.Party.Blobs, updates: map[blob.CID]bool{}}
	c.Party.Blobs = own
	c.Party.Compute = hoarder{c.Party.Compute, own}
	c.Party.Lineage = alone{c.Party.Lineage, c.Honest}
	return c.Step
}

// hoard serves no update of its owner, and waits for none of others.
type hoard struct {
	party.Blobs
	mu      sync.Mutex
	updates map[blob.CID]bool
}

func (h *hoard) keep(update []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updates[blob.Of(update)] = true
}

// Put implements party.Blobs.
func (h *hoard) Put(ctx context.Context, data []byte) (blob.CID, error) {
	c := blob.Of(data)
	h.mu.Lock()
	kept := h.updates[c]
	h.mu.Unlock()
	if kept {
		return c, ctx.Err()
	}
	return h.Blobs.Put(ctx, data)
}

// Await implements party.Blobs.
func (h *hoard) Await(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return h.Fetch(ctx, c, holders)
}

type hoarder struct {
	party.Compute
	own *hoard
}

// Train implements party.Compute.
func (h hoarder) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	w, err := h.Compute.Train(ctx, base, unit)
	if err != nil {
		return nil, err
	}
	h.own.keep(w.Update)
	for _, p := range w.Pieces {
		h.own.keep(p)
	}
	return w, nil
}

// alone computes every update that a checkpoint is made of.
type alone struct {
	party.Lineage
	honest adversary.Honest
}

// Advance implements party.Lineage.
func (a alone) Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (engine.Advanced, error) {
	return a.Lineage.Advance(ctx, base, units, func(i int) ([]byte, error) {
		w, err := a.honest.Train(ctx, base, units[i].Index)
		if err == nil && w.Commit.UpdateCID == units[i].Commit.UpdateCID {
			return w.Update, nil
		}
		return get(i)
	})
}
