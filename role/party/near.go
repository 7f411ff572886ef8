package party

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/work"
)

// An update is needed by every member of a run. Of the members in one place, one fetches it from its worker in another
// place, and the others get it there: a digest of the update and of their accounts tells which one, so that each of
// them fetches as many as the others. Each first fetches those that it brings for others, so that no two wait for each
// other. A member that did not have an update in time is not asked again.
//
// A place is what members declare, or what was measured. It changes the way of bytes and nothing else: an update is
// compared with its CID, and a member that gets it from none nearby asks its worker.

// neighbours are the members of a run by where they are.
type neighbours struct {
	mu     sync.Mutex
	stages bool // units are stages of replicas
	active []string
	places map[string]string // that were asked for
	failed map[string]bool   // did not have an update in time
}

// follow takes note of the members that fetch updates. In a run in slices each needs other parts of them.
func (n *neighbours) follow(s run.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stages = s.Terms.Pipeline.Stages() > 1
	if n.active = nil; !s.Terms.Sliced() {
		n.active = slices.Concat(s.Active(crew.Worker), s.Active(crew.Verifier))
	}
}

// place is where a member is, "" if that is not known. It is asked for once.
func (n *neighbours) place(ctx context.Context, c Chain, id string) string {
	n.mu.Lock()
	at, known := n.places[id]
	n.mu.Unlock()
	if known {
		return at
	}
	at, err := c.Place(ctx, id)
	if err != nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.places == nil {
		n.places = map[string]string{}
	}
	n.places[id] = at
	return at
}

// near lists the active members where this party is; none if that is not known.
func near(ctx context.Context, p *Executor) (ids []string, here string) {
	p.neighbours.mu.Lock()
	active := slices.DeleteFunc(slices.Clone(p.neighbours.active), func(id string) bool { return p.neighbours.failed[id] })
	p.neighbours.mu.Unlock()
	if len(active) == 0 {
		return nil, ""
	}
	if here = p.neighbours.place(ctx, p.Chain, p.ID); here == "" {
		return nil, ""
	}
	for _, id := range active {
		if p.neighbours.place(ctx, p.Chain, id) == here {
			ids = append(ids, id)
		}
	}
	return ids, here
}

// relays are the members nearby that fetch the updates of units from other places, "" where this party asks the worker.
func relays(ctx context.Context, p *Executor, units work.Units) []string {
	via := make([]string, len(units))
	nearby, here := near(ctx, p)
	if len(nearby) == 0 {
		return via
	}
	for i, u := range units {
		if p.neighbours.place(ctx, p.Chain, u.Worker) == here {
			continue
		}
		if via[i] = relay(nearby, u.Commit.UpdateCID); via[i] == p.ID {
			via[i] = ""
		}
	}
	return via
}

// relay is the one of several members that fetches an update for all.
func relay(near []string, cid string) string {
	lot := func(id string) []byte {
		d := canon.Sum("starling/party/relay/1", []byte(cid), []byte(id))
		return d[:]
	}
	return slices.MinFunc(near, func(a, b string) int { return bytes.Compare(lot(a), lot(b)) })
}

// relayed fetches an update from the member that fetches it for the others nearby.
func relayed(ctx context.Context, p *Executor, from string, c work.Commitment) ([]byte, error) {
	id, err := blob.Parse(c.UpdateCID)
	if err != nil {
		return nil, err
	}
	at, err := p.Chain.Addresses(ctx, from)
	if err != nil {
		return nil, err
	}
	b, err := p.Blobs.Relay(ctx, id, at)
	if err != nil && ctx.Err() == nil {
		p.neighbours.mu.Lock()
		defer p.neighbours.mu.Unlock()
		if p.neighbours.failed == nil {
			p.neighbours.failed = map[string]bool{}
		}
		p.neighbours.failed[from] = true
	}
	return b, err
}

// updates fetches the updates of units: those that a member nearby fetches for this party from that member, and after
// all others. "" stands for none.
//
// It waits for updates that are not published yet until wait is done. Those of stages, of which a member may not have
// the memory for more than one, are fetched in turn, and read from the store again as they are asked for.
func (p *Executor) updates(ctx, wait context.Context, units work.Units, via []string) func(i int) ([]byte, error) {
	order := around(len(units), p.own(units))
	slices.SortStableFunc(order, func(a, b int) int { return min(len(via[a]), 1) - min(len(via[b]), 1) })
	find := func(i int) ([]byte, error) {
		if from := via[i]; from != "" && !p.neighbours.lacks(from) {
			if b, err := relayed(wait, p, from, units[i].Commit); err == nil || ctx.Err() != nil {
				return b, err
			}
		}
		return p.find(ctx, wait, units[i].Commit.UpdateCID, units[i].Worker)
	}
	p.neighbours.mu.Lock()
	inTurn := p.neighbours.stages
	p.neighbours.mu.Unlock()
	if !inTurn {
		all := p.gather(order, find)
		return func(i int) ([]byte, error) { return all[i].bytes, all[i].err }
	}
	failed := make([]error, len(units))
	for _, i := range order {
		b, err := find(i)
		if failed[i] = err; err != nil {
			break // it is reported
		}
		tensor.Dropped(len(b)) // before the next one is read
	}
	return func(i int) ([]byte, error) {
		if failed[i] != nil {
			return nil, failed[i]
		}
		return p.find(ctx, ctx, units[i].Commit.UpdateCID, units[i].Worker)
	}
}

// lacks reports whether a member did not have an update in time.
func (n *neighbours) lacks(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed[id]
}
