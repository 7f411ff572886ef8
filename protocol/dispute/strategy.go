package dispute

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Oracle is a party's own execution of the disputed unit.
type Oracle interface {
	// Steps returns the inner state root after each of the given numbers of inner steps of the unit, ascending.
	Steps(after []uint64) ([]canon.Digest, error)
	// Trace returns the tree over the outputs of all operators of an inner step of the unit, from 0.
	Trace(step uint32) (*canon.Tree, error)
	// Result returns, for Update, the tree over the payloads of the update, with the zero digest for one that cannot be
	// computed because an element of it is not finite; for Carry, the tree over the tensors of the carried state.
	Result(k Kind) (*canon.Tree, error)
	// Parts returns the same as Referee.Parts.
	Parts(c Claim) uint64
	// Partial returns the partial state of the output or payload of a claim after each of the given numbers of its parts,
	// ascending; after all of them, its root. From a part on that cannot be computed it is the zero digest.
	Partial(c Claim, after []uint64) ([]canon.Digest, error)
	// Leaf returns the referee's payload for the question. prove gives the proof of an earlier operator's output under
	// the asserter's Trace.
	Leaf(c Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error)
}

// ErrAgree is returned by NextChallengerMove when the challenger finds no difference in the digests shown.
var ErrAgree = errors.New("dispute: no digest that is shown differs from the challenger's")

// player is a dispute and the execution of one of its parties.
type player struct {
	Dispute
	mine Oracle
}

// NextAsserterMove is the asserter's next move.
func NextAsserterMove(d Dispute, mine Oracle) (Move, error) {
	g := player{d, mine}
	switch g.Stage {
	case ShowStates:
		states, err := g.states(g.interval().Boundaries())
		return Move{States: &States{Digests: states}}, err
	case ShowTree, ShowNodes:
		t, err := g.tree()
		if err != nil {
			return Move{}, err
		}
		if g.nonFinite() {
			return point(t, mine, g.claim(Update, 0))
		}
		level, first, n := g.Tree.next()
		nodes, err := row(t, level, first, n)
		switch {
		case g.Stage == ShowNodes:
			return Move{Nodes: &Nodes{Children: nodes}}, err
		case t.Len() == 1:
			nodes = nil
		}
		return Move{Tree: &Tree{Top: t.Top(), Children: nodes}}, err
	}
	return Move{}, fmt.Errorf("%w: the asserter has none", ErrMove)
}

// point finds the first part of an update that cannot be made.
func point(update *canon.Tree, mine Oracle, c Claim) (Move, error) {
	for ; int(c.Index) < update.Len(); c.Index++ {
		if payload, err := update.Node(0, int(c.Index)); err != nil || !payload.IsZero() {
			continue
		}
		n := mine.Parts(c)
		after := make([]uint64, n)
		for i := range after {
			after[i] = uint64(i) + 1
		}
		states, err := mine.Partial(c, after)
		if err != nil {
			return Move{}, err
		}
		part := slices.IndexFunc(states, canon.Digest.IsZero)
		return Move{Point: &PointNonFinite{Index: c.Index, Part: uint64(max(part, 0))}}, nil
	}
	return Move{}, fmt.Errorf("%w: the update can be made", ErrMove)
}

// NextChallengerMove is the challenger's next move.
func NextChallengerMove(d Dispute, mine Oracle) (Move, error) {
	g := player{d, mine}
	switch g.Stage {
	case ShowLeaf:
		payload, err := mine.Leaf(g.last(), nil)
		return Move{Leaf: &Leaf{Payload: payload}}, err
	case PickState:
		return g.pressState()
	case PickNode:
		return g.pressNode()
	}
	return Move{}, fmt.Errorf("%w: the challenger has none", ErrMove)
}

func (g player) pressState() (Move, error) {
	v := g.interval()
	own, err := g.states(append(v.Boundaries(), v.To))
	if err != nil {
		return Move{}, err
	}
	i, err := differ(append(slices.Clip(v.Shown), v.After), own)
	if err != nil {
		return Move{}, err
	}
	if v, err = v.pick(i); err != nil {
		return Move{}, err
	}
	if !g.parted() || !v.single() {
		return Move{Pick: &Pick{Index: i}}, nil
	}
	g.Parts = v
	return g.pressLeaf(i)
}

// states are a party's own, at positions of the interval under way.
func (g player) states(at []uint64) ([]canon.Digest, error) {
	if g.parted() {
		return g.mine.Partial(g.question(), at)
	}
	return g.mine.Steps(at)
}

func (g player) pressNode() (Move, error) {
	t, err := g.tree()
	if err != nil {
		return Move{}, err
	}
	if g.binds() && t.Top() == g.Tree.Top {
		payload, err := g.mine.Leaf(g.claim(Binding, 0), nil)
		return Move{Bind: &BindClaim{Payload: payload}}, err
	}
	last := g.Tree.last()
	own, err := row(t, int(last.Level), int(last.First), len(last.Nodes))
	if err != nil {
		return Move{}, err
	}
	i, err := differ(last.Nodes, own)
	if err != nil {
		return Move{}, err
	}
	if last.Level > 0 || g.mine.Parts(g.claim(g.kind(), last.First+i)) > 1 {
		return Move{Pick: &Pick{Index: i}}, nil
	}
	if g.Tree, err = g.Tree.pick(i); err != nil {
		return Move{}, err
	}
	return g.pressLeaf(i)
}

// pressLeaf brings the last question to the referee.
func (g player) pressLeaf(i uint32) (Move, error) {
	prove := func(int) (canon.Proof, error) { return nil, fmt.Errorf("%w: an update has no trace", ErrMove) }
	if !g.aboutUpdate() {
		t, err := g.mine.Trace(uint32(g.Steps.From)) // before Leaf, which may be exclusive
		if err != nil {
			return Move{}, err
		}
		prove = func(operator int) (canon.Proof, error) { return g.Tree.proof(t, operator) }
	}
	payload, err := g.mine.Leaf(g.question(), prove)
	return Move{Leaf: &Leaf{Index: i, Payload: payload}}, err
}

func differ(theirs, mine []canon.Digest) (uint32, error) {
	if len(theirs) != len(mine) {
		return 0, fmt.Errorf("%w: %d digests for %d", ErrAgree, len(mine), len(theirs))
	}
	for i := range theirs {
		if theirs[i] != mine[i] {
			return uint32(i), nil
		}
	}
	return 0, ErrAgree
}

// tree is the party's own version of the tree that the game descends.
func (g player) tree() (t *canon.Tree, err error) {
	if g.aboutUpdate() {
		t, err = g.mine.Result(g.kind())
	} else {
		t, err = g.mine.Trace(uint32(g.Steps.From))
	}
	if n := int(g.Tree.Leaves); err == nil && t.Len() != n {
		err = fmt.Errorf("%w: a tree of %d leaves, the unit's has %d", ErrConfig, t.Len(), n)
	}
	return t, err
}
