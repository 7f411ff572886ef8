// Package adversary holds parties that break the rules, each a small type around an honest one: its false behaviour,
// and how it defends that. They show, on a real network and in the simulator, how the rules answer each attack.
//
// They are no part of any honest party, and the rules alone must refute their messages.
package adversary

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// Honest is the computation of a party that keeps the rules: an engine.Engine, or a type with the same results.
type Honest interface {
	party.Compute
	party.Lineage
	Task() *train.Task
	Base(terms.Checkpoint) (*train.Checkpoint, error)
	Origin(base terms.Checkpoint, unit uint32) ([]*tensor.Tensor, error)
	NewWork(name terms.Checkpoint, unit uint32, r *train.Result) (*engine.Work, error)
	Compare(mine *engine.Work, s audit.Subject, c work.Commitment) engine.Comparison
	Answer(mine *engine.Work, s audit.Subject, question canon.Digest) (audit.Opening, error)
}

// Step is a role.
type Step func(role.Event) []role.Action

// Setup is an honest party that is about to begin.
type Setup struct {
	Party  *party.Executor
	Honest Honest
	Step   Step
	State  func(ctx context.Context) (run.State, error) // of the run, as on the chain
	Circle Circle                                       // its accomplices; nil: it has none
}

// Attack is one way to break the rules.
type Attack interface {
	// Install exchanges parts of the party, and returns the role to play.
	Install(c Setup) Step
}

// tamperedChain sends the chain other messages than those that the party makes.
type tamperedChain struct {
	party.Chain
	send func(ctx context.Context, m role.Action) error
}

// Send implements party.Chain.
func (s tamperedChain) Send(ctx context.Context, m role.Action) error { return s.send(ctx, m) }
