package adversary

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// Location is the segment, step, operator or part at which a false result begins.
type Location uint8

// The locations.
const (
	First   Location = 1
	Last    Location = 2
	Nowhere Location = 3 // everything shown is right, and the claim does not follow from it
)

// String returns the name of the location.
func (p Location) String() string { return [...]string{"", "first", "last", "nowhere"}[p] }

func (p Location) of(n int) int {
	switch p {
	case First:
		return 0
	case Last:
		return n - 1
	}
	return -1
}

// Lies is a worker that trains as it should, and commits to a wrong state after one of its segments. In the dispute it
// lies as little as it can, at the given place of every level.
type Lies struct{ Segment, Step, Operator, Part Location }

// Install implements Attack.
func (l Lies) Install(c Setup) Step {
	c.Party.Compute = liar{c.Honest, l}
	return c.Step
}

type liar struct {
	Honest
	Lies
}

// Train implements party.Compute.
func (l liar) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	w, err := l.Honest.Train(ctx, name, unit)
	if err != nil {
		return nil, err
	}
	lie := *w
	lie.Commit.Segments = append([]canon.Digest(nil), w.Commit.Segments...)
	k := 1 + l.Segment.of(len(lie.Commit.Segments)-1)
	lie.Commit.Segments[k] = invented(name, unit, uint32(k))
	return &lie, nil
}

// Oracle implements party.Compute.
func (l liar) Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	honest, err := l.Honest.Oracle(base, g)
	if err != nil {
		return nil, err
	}
	operator := l.Operator.of(len(l.Task().Step.Ops))
	return &pretender{Oracle: honest, claimed: g.Steps.After, steps: l.Step, operator: operator, parts: l.Part}, nil
}

// pretender is the best defence of a worker that committed to a fabricated state: everything is as it is, except that
// one step leads to that state, by an operator with another output, made by one of its parts.
type pretender struct {
	dispute.Oracle
	claimed  canon.Digest
	steps    Location // First: the state is wrong from the first step on; Last: after the last
	operator int      // with another output; negative: none
	parts    Location // likewise
}

// Steps implements dispute.Oracle.
func (p *pretender) Steps(after []uint64) ([]canon.Digest, error) {
	roots, err := p.Oracle.Steps(after)
	return p.invent(roots, after, p.steps), err
}

// invent makes all states up, if the lie is to be in the first place: the last is shown already.
func (p *pretender) invent(states []canon.Digest, after []uint64, at Location) []canon.Digest {
	if at != First {
		return states
	}
	for i := range states {
		states[i] = canon.Hash("starling/invented/state", []any{p.claimed, after[i]})
	}
	return states
}

// Trace implements dispute.Oracle.
func (p *pretender) Trace(step uint32) (*canon.Tree, error) {
	t, err := p.Oracle.Trace(step)
	if err != nil || p.operator < 0 {
		return t, err
	}
	return Replaced(t, p.operator, canon.Sum("starling/invented/output", p.claimed[:]))
}

// Partial implements dispute.Oracle.
func (p *pretender) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	states, err := p.Oracle.Partial(c, after)
	if int(c.Index) != p.operator {
		return states, err
	}
	return p.invent(states, after, p.parts), err
}

// Replaced is a tree in which one leaf is another.
func Replaced(t *canon.Tree, i int, leaf canon.Digest) (*canon.Tree, error) {
	leaves := make([]canon.Digest, t.Len())
	for k := range leaves {
		var err error
		if leaves[k], err = t.Node(0, k); err != nil {
			return nil, err
		}
	}
	leaves[i] = leaf
	return canon.NewTree(leaves), nil
}
