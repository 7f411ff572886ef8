// Package handovers checks that the other side of each link of a stage has signed what the stage commits to.
package handovers

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Commit is run.State.Commit of a commitment whose signatures are checked once the rules accept it.
func Commit(s run.State, env transition.Env, from string, id work.UnitID,
	c work.Commitment) (run.State, []event.Event, error) {
	after, events, err := s.Commit(env, from, id, c)
	if err == nil {
		err = signed(s, from, id, c)
	}
	if err != nil {
		return s, nil, err
	}
	return after, events, nil
}

// signed checks the signatures of the other sides.
func signed(s run.State, from string, id work.UnitID, c work.Commitment) error {
	if len(c.Links) == 0 {
		return nil
	}
	l, _ := s.At(id.Round)
	n := s.Terms.Pipeline.Stages()
	replica := l.Replica(s.Terms, id.Unit)
	stage := id.Unit % n
	for i, link := range s.Terms.Pipeline.LinksOf(stage) {
		other := replica[link.From+link.To-stage]
		if other.Status != work.Assigned && len(other.Commit.Links) > 0 { // the rules have compared both heads
			continue
		}
		signer, by := other.Worker, handover.Receiver
		if link.To == stage {
			by = handover.Sender
		}
		of := handover.Link{Job: handover.Of(s.Terms.Job, id.Attempt), Round: id.Round, Replica: id.Unit / n,
			From: link.From, To: link.To, Sender: replica[link.From].Worker, Receiver: replica[link.To].Worker}
		x := c.Links[i]
		statement := handover.Statement(of, handover.Head{Frames: x.Frames, Chain: x.Chain}, by)
		if err := account.VerifyJoined(signer, x.Signature, canon.Digest(statement)); err != nil {
			return fmt.Errorf("%w: stage %d of %s, on the link from stage %d to stage %d: %w", refusal.ErrBadCommitment, stage,
				from, link.From, link.To, err)
		}
	}
	return nil
}
