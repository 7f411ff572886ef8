package staged

import (
	"bytes"

	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/pipeline"
)

// A stage that has all frames of a neighbour, and its signatures, can commit. It may keep its last signature from the
// neighbour, which could then not commit, and would be late. Its commitment names the head, so that is its word.

// left is the number of frames that a stage has to exchange with each of its neighbours, in both directions.
func (x *Engine) left(a Attempt) map[int]int {
	left := map[int]int{}
	steps := int(x.Task().Spec.StepsOf(a.Unit(a.Stage)))
	for _, l := range link.OfStage(a.Plan, a.Stage) {
		left[int(l.From)+int(l.To)-a.Stage] += len(link.Frames(a.Plan, l)) * steps
	}
	return left
}

// taken are the heads of the links into a stage to which it has committed in an attempt, by their sender.
func (x *Engine) taken(a Attempt, stage int) map[int]handover.Head {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.run.At(a.Round)
	replica := l.Replica(x.run.Terms, a.Unit(0))
	if !ok || replica == nil {
		return nil
	}
	u := replica[stage]
	links := link.OfStage(a.Plan, stage)
	if u.Status == work.Assigned || u.Attempt != a.Number || len(u.Commit.Links) != len(links) {
		return nil
	}
	heads := map[int]handover.Head{}
	for i, l := range links {
		if int(l.To) == stage {
			heads[int(l.From)] = handover.Head{Frames: u.Commit.Links[i].Frames, Chain: u.Commit.Links[i].Chain}
		}
	}
	return heads
}

// word is the message, without a signature, that a stage that has committed owes this one.
func (x *Engine) word(a Attempt, stage int) (m pipeline.Message, ok bool) {
	m.Voucher.By = handover.Receiver
	m.Voucher.Head, ok = x.taken(a, stage)[a.Stage]
	return m, ok
}

// hasCommitted reports whether a stage that has not signed a statement about a link with this one has committed to it.
func (x *Engine) hasCommitted(r *pipeline.Replica, a Attempt, stage int, statement []byte) bool {
	h, ok := x.taken(a, stage)[a.Stage]
	return ok && bytes.Equal(handover.Statement(r.Link(a.Stage, stage), h, handover.Receiver), statement)
}
