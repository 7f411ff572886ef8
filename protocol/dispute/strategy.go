package dispute

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Oracle is what a party knows about the disputed unit, from executing it again.
type Oracle interface {
	// Steps returns the inner state root after each of the given numbers of inner steps of the unit, ascending.
	Steps(after []uint32) ([]canon.Digest, error)
	// Trace returns the tree over the outputs of all operators of an inner step of the unit, from 0.
	Trace(step uint32) (*canon.Tree, error)
	// Update returns the tree over the payloads of the update.
	Update() (*canon.Tree, error)
	// Leaf returns what the referee needs to answer the question. prove gives the proof of an earlier operator's output
	// under the asserter's Trace.
	Leaf(c Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error)
}

// ErrAgree is returned by Press when the challenger finds no difference in what it is shown.
var ErrAgree = errors.New("dispute: nothing shown differs from what the challenger computed")

// Answer is the asserter's next move.
func Answer(g Game, mine Oracle) (Move, error) {
	switch g.Stage {
	case ShowSteps:
		roots, err := mine.Steps(g.Boundaries())
		return Move{Steps: &Steps{Roots: roots}}, err
	case ShowTree:
		t, err := g.tree(mine)
		if err != nil {
			return Move{}, err
		}
		m := &Tree{Top: t.Top()}
		if h := canon.Height(g.leaves()); h > 0 {
			m.Children, err = t.Children(h, 0)
		}
		return Move{Tree: m}, err
	case ShowNodes:
		t, err := g.tree(mine)
		if err != nil {
			return Move{}, err
		}
		c, err := t.Children(g.level(), int(g.Node))
		return Move{Nodes: &Nodes{Children: c}}, err
	}
	return Move{}, fmt.Errorf("%w: the asserter has none", ErrMove)
}

// Press is the challenger's next move.
func Press(g Game, mine Oracle) (Move, error) {
	switch g.Stage {
	case ShowLeaf:
		payload, err := mine.Leaf(g.claim(Start, 0), nil)
		return Move{Leaf: &Leaf{Payload: payload}}, err
	case PickStep:
		roots, err := mine.Steps(g.Boundaries())
		if err != nil {
			return Move{}, err
		}
		i, err := differ(g.Steps, roots)
		return Move{Pick: &Pick{Index: i}}, err
	case PickNode:
		return g.pressNode(mine)
	}
	return Move{}, fmt.Errorf("%w: the challenger has none", ErrMove)
}

func (g Game) pressNode(mine Oracle) (Move, error) {
	t, err := g.tree(mine)
	if err != nil {
		return Move{}, err
	}
	if g.binds() && t.Top() == g.Top {
		payload, err := mine.Leaf(g.claim(Binding, 0), nil)
		return Move{Bind: &Bind{Payload: payload}}, err
	}
	nodes, first := g.visible()
	own := make([]canon.Digest, len(nodes))
	for i := range own {
		if own[i], err = t.Node(g.level(), int(first)+i); err != nil {
			return Move{}, err
		}
	}
	i, err := differ(nodes, own)
	if err != nil {
		return Move{}, err
	}
	if g.level() > 0 {
		return Move{Pick: &Pick{Index: i}}, nil
	}
	kind := Operator
	if g.aboutUpdate() {
		kind = Update
	}
	c := g.claim(kind, first+i)
	c.Output = nodes[i]
	payload, err := mine.Leaf(c, func(operator int) (canon.Proof, error) { return g.proof(t, operator) })
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
func (g Game) tree(mine Oracle) (*canon.Tree, error) {
	t, err := (*canon.Tree)(nil), error(nil)
	if g.aboutUpdate() {
		t, err = mine.Update()
	} else {
		t, err = mine.Trace(g.From)
	}
	if err == nil && t.Len() != g.leaves() {
		err = fmt.Errorf("%w: a tree of %d leaves, the unit's has %d", ErrConfig, t.Len(), g.leaves())
	}
	return t, err
}

// proof shows that a leaf to the left of the first difference is under the asserter's root. On the way down, what is
// beside a node is what the asserter showed; in subtrees that both agree on, it is the challenger's own.
func (g Game) proof(mine *canon.Tree, leaf int) (canon.Proof, error) {
	n := g.leaves()
	height := canon.Height(n)
	var p canon.Proof
	for level, node := 0, leaf; level < height; level, node = level+1, node/canon.Fanout {
		parent := node / canon.Fanout
		siblings, ok := g.shownBelow(level+1, parent)
		if !ok {
			var err error
			if siblings, err = mine.Children(level+1, parent); err != nil {
				return nil, err
			}
		}
		at := node % canon.Fanout
		p = append(p, append(append([]canon.Digest{}, siblings[:at]...), siblings[at+1:]...))
	}
	own, err := mine.Node(0, leaf)
	if err != nil {
		return nil, err
	}
	if !p.Verify(g.root(), n, leaf, own) {
		return nil, fmt.Errorf("%w: leaf %d is not to the left of the first difference", ErrAgree, leaf)
	}
	return p, nil
}

// shownBelow returns the children of a node that the asserter showed on the way down.
func (g Game) shownBelow(level, node int) ([]canon.Digest, bool) {
	depth := canon.Height(g.leaves()) - level // in Shown
	if depth >= len(g.Shown) {
		return nil, false
	}
	on := int(g.Node)
	for range len(g.Shown) - 1 - depth {
		on /= canon.Fanout
	}
	return g.Shown[depth], on == node
}
