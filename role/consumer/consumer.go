// Package consumer is the role of the account that ordered the job: it collects every attested checkpoint of the
// lineage in order, so that it has the model, its losses and its receipts even if the network stops afterwards.
//
// A checkpoint may be collected before its round is final; when its round is rolled back, it is dropped again.
//
// It has no part in the run, which continues without it.
package consumer

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role"
)

// Collect fetches, evaluates and records the checkpoint after Round rounds. It ends with role.Finished or role.Failed.
type Collect struct{ Round uint32 }

// Key implements role.Action.
func (a Collect) Key() string { return fmt.Sprintf("collect %d", a.Round) }

// Rewind drops the checkpoints after Round rounds, which a verdict made void. It ends with role.Finished or
// role.Failed.
type Rewind struct{ Round uint32 }

// Key implements role.Action.
func (a Rewind) Key() string { return fmt.Sprintf("rewind %d", a.Round) }

// Conclude closes the books of a run that ended, after its last checkpoint is collected.
type Conclude struct{}

// Key implements role.Action.
func (a Conclude) Key() string { return "conclude" }

// Consumer is the consumer of one run.
type Consumer struct {
	next    uint32 // first round not collected
	height  int64
	pending role.Pending
	closed  bool
}

// New returns a consumer that already holds the checkpoints before round next.
func New(next uint32) *Consumer { return &Consumer{next: next} }

// Step takes in an event and returns what to do now.
func (c *Consumer) Step(e role.Event) []role.Action {
	switch e := e.(type) {
	case role.Finished:
		c.pending.Done(e.Action)
		switch a := e.Action.(type) {
		case Collect:
			c.next = max(c.next, a.Round+1)
		case Rewind:
			c.next = a.Round + 1
		case Conclude:
			c.closed = true
		}
	case role.Failed:
		c.pending.Rest(e.Action, c.height)
	case role.Block:
		c.height = e.Height
		return c.pending.Want(c.height, c.duty(e.Run)...)
	}
	return nil
}

func (c *Consumer) duty(s run.State) []role.Action {
	switch {
	case c.next > s.Base.Round+1:
		return []role.Action{Rewind{Round: s.Base.Round}}
	case c.next <= s.Base.Round:
		return []role.Action{Collect{Round: c.next}}
	case (s.Phase == progress.Done || s.Phase == progress.Halted) && !c.closed:
		return []role.Action{Conclude{}}
	}
	return nil
}
