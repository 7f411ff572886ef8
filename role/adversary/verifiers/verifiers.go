// Package verifiers holds the adversaries that are verifiers, each for itself: those that pass units without executing
// them, and those that challenge right work. Verifiers that shield or convict accomplices belong to a circle, and are
// in package adversary.
package verifiers

import (
	"context"
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/verifier"
)

// RubberStamps is a verifier that passes whatever it is to audit, without a look.
type RubberStamps struct{}

// Install implements Attack.
func (RubberStamps) Install(c adversary.Setup) adversary.Step {
	c.Party.Compute = stamper{c.Honest,
		func(terms.Checkpoint, audit.Subject) canon.Digest { return canon.Sum("starling/invented/seal") }}
	return c.Step
}

// Idle is a verifier that keeps the rules, and executes no unit that is not drawn for it.
type Idle struct{}

// Install implements Attack.
func (Idle) Install(c adversary.Setup) adversary.Step {
	return verifier.New(c.Party.ID, canon.Sum("starling/idle", []byte(c.Party.ID))).Step
}

// CopiesSeal is a verifier that answers every audit with the seal that the verifier Of would give; if Of is empty,
// with a seal that another verifier has given, of the same unit if there is one.
type CopiesSeal struct{ Of string }

// Install implements Attack.
func (a CopiesSeal) Install(c adversary.Setup) adversary.Step {
	if a.Of == "" {
		c.Party.Compute = &sealCopier{Honest: c.Honest, cast: c}
		return c.Step
	}
	c.Party.Compute = stamper{c.Honest, func(base terms.Checkpoint, s audit.Subject) canon.Digest {
		w, err := c.Honest.Train(context.Background(), base, s.Unit)
		if err != nil {
			return canon.Digest{}
		}
		s.Verifier = a.Of
		f, _ := c.Honest.Check(context.Background(), base, s, w.Commit)
		return f.Seal
	}}
	return c.Step
}

type stamper struct {
	adversary.Honest
	seal func(terms.Checkpoint, audit.Subject) canon.Digest
}

// Check implements party.Compute.
func (s stamper) Check(_ context.Context, base terms.Checkpoint, at audit.Subject,
	_ work.Commitment) (engine.Comparison, error) {
	return engine.Comparison{Right: true, Seal: s.seal(base, at)}, nil
}

// sealCopier copies what is on the chain.
type sealCopier struct {
	adversary.Honest
	cast   adversary.Setup
	mu     sync.Mutex
	copied canon.Digest // the latest
}

// Check implements party.Compute. If no seal was given yet it makes one up, since an audit without an answer would
// cost it the seat.
func (p *sealCopier) Check(ctx context.Context, _ terms.Checkpoint, at audit.Subject,
	_ work.Commitment) (engine.Comparison, error) {
	s, err := p.cast.State(ctx)
	if err != nil {
		return engine.Comparison{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range s.All() {
		for _, u := range l.Units {
			same := l.Round == at.Round && u.Index == at.Unit
			if !u.Seal.IsZero() && u.Verifier != p.cast.Party.ID && (same || p.copied.IsZero()) {
				p.copied = u.Seal
			}
		}
	}
	if p.copied.IsZero() {
		return engine.Comparison{Right: true, Seal: canon.Sum("starling/invented/seal")}, nil
	}
	return engine.Comparison{Right: true, Seal: p.copied}, nil
}

// Colludes is a verifier that passes the commitments of its partners, with the seal of the right state, and audits all
// others.
type Colludes struct{ With []string }

// Install implements Attack.
func (a Colludes) Install(c adversary.Setup) adversary.Step {
	friend := colluder{c.Honest, nil}
	c.Party.Compute = &friend
	return func(e role.Event) []role.Action {
		if b, ok := e.(role.Block); ok {
			friend.units = nil
			for _, l := range b.Run.All() {
				for _, u := range l.Units {
					if slices.Contains(a.With, u.Worker) {
						friend.units = append(friend.units, shielded{l.Base, u.Index})
					}
				}
			}
		}
		return c.Step(e)
	}
}

type colluder struct {
	adversary.Honest
	units []shielded // of the partners, in the rounds that are not final
}

type shielded struct {
	base terms.Checkpoint
	unit uint32
}

// Check implements party.Compute.
func (p *colluder) Check(ctx context.Context, base terms.Checkpoint, s audit.Subject,
	c work.Commitment) (engine.Comparison, error) {
	if !slices.Contains(p.units, shielded{base, s.Unit}) {
		return p.Honest.Check(ctx, base, s, c)
	}
	right, err := p.Honest.Train(ctx, base, s.Unit)
	if err != nil {
		return engine.Comparison{}, err
	}
	return p.Honest.Check(ctx, base, s, right.Commit)
}

// Measure implements party.Compute: it says of every unit of tolerant work what is usual, and has executed nothing.
func (s stamper) Measure(_ context.Context, base terms.Checkpoint, unit uint32, _ work.Commitment,
	_ []byte) (audit.Finding, error) {
	return audit.Finding{DistancePPM: 1000, CosinePPM: 999_999, End: s.seal(base, audit.Subject{Unit: unit})}, nil
}

// Denies is a verifier that says of every unit of tolerant work that it is outside, having executed it.
type Denies struct{}

// Install implements Attack.
func (Denies) Install(c adversary.Setup) adversary.Step {
	c.Party.Compute = denier{c.Honest}
	return c.Step
}

type denier struct{ adversary.Honest }

// Measure implements party.Compute.
func (d denier) Measure(ctx context.Context, base terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	f, err := d.Honest.Measure(ctx, base, unit, c, update)
	f.DistancePPM, f.CosinePPM = 2_000_000, 0
	return f, err
}

// DisputeStrategy is how a false accusation is carried through.
type DisputeStrategy uint8

// The manners.
const (
	// says that the trace of a step, which it agrees with, does not lead to the state, and shows the trace
	ToTheLeaf DisputeStrategy = iota
	Inventing                 // says that every output of a step is another, and brings what the first is computed from
	Silently                  // opens the dispute and says nothing more
	Malformed                 // brings a payload in which bytes are missing
	Oversized                 // brings a payload that is too large, and nothing more
)

// ChallengesFalsely is a verifier that disputes right work.
type ChallengesFalsely struct {
	Segment uint32 // that it says is wrong
	Manner  DisputeStrategy
}

// Install implements Attack.
func (a ChallengesFalsely) Install(c adversary.Setup) adversary.Step {
	c.Party.Compute = accuser{c.Honest, a}
	brought := false
	return adversary.Moving(c, func(m dispute.Move) dispute.Move {
		var payload *[]byte
		switch {
		case m.Leaf != nil:
			payload = &m.Leaf.Payload
		case m.Bind != nil:
			payload = &m.Bind.Payload
		}
		switch {
		case a.Manner == Silently || brought:
			return dispute.Move{} // which no chain takes
		case payload == nil:
		case a.Manner == Malformed:
			*payload = (*payload)[:len(*payload)/2]
		case a.Manner == Oversized:
			*payload, brought = make([]byte, dispute.MaxLeaf+1), true
		}
		return m
	})
}

type accuser struct {
	adversary.Honest
	ChallengesFalsely
}

// Check implements party.Compute.
func (p accuser) Check(context.Context, terms.Checkpoint, audit.Subject, work.Commitment) (engine.Comparison, error) {
	return engine.Comparison{Differ: p.Segment}, nil
}

// Oracle implements party.Compute: everything that is shown differs.
func (p accuser) Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	honest, err := p.Honest.Oracle(base, g)
	return contrarian{honest, p.Manner == Inventing}, err
}

// contrarian knows better wherever it is shown something.
type contrarian struct {
	dispute.Oracle
	trace bool // also in a trace
}

// Steps implements dispute.Oracle.
func (o contrarian) Steps(after []uint64) ([]canon.Digest, error) {
	return others(o.Oracle.Steps(after))
}

// others are other states.
func others(states []canon.Digest, err error) ([]canon.Digest, error) {
	for i := range states {
		states[i][0] ^= 1
	}
	return states, err
}

// Trace implements dispute.Oracle.
func (o contrarian) Trace(step uint32) (*canon.Tree, error) {
	if !o.trace {
		return o.Oracle.Trace(step)
	}
	return other(o.Oracle.Trace(step))
}

// Partial implements dispute.Oracle.
func (o contrarian) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	return others(o.Oracle.Partial(c, after))
}

// Result implements dispute.Oracle.
func (o contrarian) Result(k dispute.Kind) (*canon.Tree, error) { return other(o.Oracle.Result(k)) }

// other is a tree of other leaves.
func other(t *canon.Tree, err error) (*canon.Tree, error) {
	for i := 0; err == nil && i < t.Len(); i++ {
		var leaf canon.Digest
		if leaf, err = t.Node(0, i); err == nil {
			leaf[0] ^= 1
			t, err = adversary.Replaced(t, i, leaf)
		}
	}
	return t, err
}

var _ party.Compute = (*colluder)(nil)
