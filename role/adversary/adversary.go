// Package adversary holds parties that break the rules, each a small type around an honest one: what it does in place
// of its duty, and how it defends that. They exist to show, on a real network and in the simulator, what each attack
// meets.
//
// They are no part of any honest party, and whatever they say must be refuted by the rules alone.
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

// Honest is what a party computes that keeps the rules: an engine.Engine, or what computes the same.
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
	State  func(ctx context.Context) (run.State, error) // of the run, as everybody can read it
	Circle Circle                                       // its accomplices; nil: it has none
}

// Attack is one way to break the rules.
type Attack interface {
	// Install exchanges parts of the party, and returns the role to play.
	Install(c Setup) Step
}

// says is a chain to which something else is said than the party means.
type says struct {
	party.Chain
	send func(ctx context.Context, m role.Action) error
}

// Send implements party.Chain.
func (s says) Send(ctx context.Context, m role.Action) error { return s.send(ctx, m) }
