package stages

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
	"github.com/starling-network/starling/role/staged"
)

// Hides is a worker that computes a wrong forward where an accomplice holds a stage that it exchanges values with, and
// serves no value that the two exchange, nor does the accomplice. Elsewhere it is honest.
type Hides struct{}

// Install implements Attack.
func (Hides) Install(c adversary.Setup) adversary.Step {
	x, ok := c.Honest.(*staged.Engine)
	if ok && c.Circle != nil && c.Circle.Tell(friend(c.Party.ID)) == nil { // before the first unit of any of them
		c.Party.Compute = &hider{Engine: x, setup: c, lied: map[place]bool{}}
	}
	return c.Step
}

// place names a unit of a round.
type place struct{ round, unit uint32 }

type hider struct {
	*staged.Engine
	setup adversary.Setup

	mu   sync.Mutex
	lied map[place]bool
}

// friend is what a circle knows of a member.
func friend(id string) canon.Digest { return canon.Sum("starling/adversary/hides/1", []byte(id)) }

// hidden are the places of the links of a unit whose other side an accomplice holds, and the number of all its links.
func (h *hider) hidden(ctx context.Context, round, unit uint32) (places []int, all int, err error) {
	s, err := h.setup.State(ctx)
	if err != nil {
		return nil, 0, err
	}
	l, ok := s.At(round)
	replica := l.Replica(s.Terms, unit)
	if !ok || replica == nil {
		return nil, 0, fmt.Errorf("stages: round %d is over", round)
	}
	stage := unit % s.Terms.Pipeline.Stages()
	links := s.Terms.Pipeline.LinksOf(stage)
	for i, link := range links {
		told, err := h.setup.Circle.Told(friend(replica[link.From+link.To-stage].Worker))
		if err != nil {
			return nil, 0, err
		}
		if told {
			places = append(places, i)
		}
	}
	return places, len(links), nil
}

// Train implements party.Compute.
func (h *hider) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	places, all, err := h.hidden(ctx, name.Round, unit)
	if err != nil {
		return nil, err
	}
	if len(places) == 0 {
		return h.Engine.Train(ctx, name, unit)
	}
	h.mu.Lock()
	h.lied[place{name.Round, unit}] = true
	h.mu.Unlock()
	w, err := liar{h.Engine, order.Forward}.Train(ctx, name, unit)
	if err != nil {
		return nil, err
	}
	steps := (len(w.Handed) - 1) / all // a blob of each step of each link, and the record
	var served []hold.Blob
	for i, b := range w.Handed {
		if !slices.Contains(places, i/steps) {
			served = append(served, b)
		}
	}
	w.Handed = served
	return w, nil
}

// Oracle implements party.Compute.
func (h *hider) Oracle(name terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	h.mu.Lock()
	lied := h.lied[place{name.Round, g.Config.Unit}]
	h.mu.Unlock()
	if lied {
		return liar{h.Engine, order.Forward}.Oracle(name, g)
	}
	return h.Engine.Oracle(name, g)
}
