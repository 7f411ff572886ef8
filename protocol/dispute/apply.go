package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Apply makes a move. An illegal one is an error, and the game stays as it was. The referee is asked only by a move that
// is Final.
func (g Game) Apply(height int64, from string, m Move, r Referee) (Game, error) {
	party := g.Config.Challenger
	if g.Turn == Asserter {
		party = g.Config.Asserter
	}
	switch {
	case g.Stage == Over:
		return g, fmt.Errorf("%w: against %s", ErrOver, g.Loser())
	case from != party:
		return g, fmt.Errorf("%w: the %s %s moves next", ErrNotYours, g.Turn, party)
	case height > g.Deadline:
		return g, fmt.Errorf("%w: it was height %d", ErrLate, g.Deadline)
	}
	next, err := g.play(height, m, r)
	if err != nil {
		return g, err
	}
	return next, nil
}

func (g Game) play(height int64, m Move, r Referee) (Game, error) {
	switch {
	case g.Stage == ShowSteps && m.Steps != nil:
		return g.showSteps(height, m.Steps.Roots)
	case g.Stage == PickStep && m.Pick != nil:
		return g.pickStep(height, m.Pick.Index)
	case g.Stage == ShowTree && m.Tree != nil:
		return g.showTree(height, *m.Tree)
	case g.Stage == PickNode && m.Pick != nil:
		return g.pickNode(height, m.Pick.Index)
	case g.Stage == ShowNodes && m.Nodes != nil:
		return g.showNodes(height, m.Nodes.Children)
	case m.Bind != nil && g.binds():
		return g.judge(height, g.claim(Binding, 0), m.Bind.Payload, r)
	case m.Leaf != nil && g.Stage == ShowLeaf && m.Leaf.Index == 0:
		return g.judge(height, g.claim(Start, 0), m.Leaf.Payload, r)
	case m.Leaf != nil && g.Stage == PickNode:
		return g.leaf(height, *m.Leaf, r)
	}
	return g, fmt.Errorf("%w: the %s owes another", ErrMove, g.Turn)
}

// Boundaries lists after which inner steps of the unit the asserter shows the state next: up to sixteen, evenly spread
// from the agreed state to the disputed one, which is the last.
func (g Game) Boundaries() []uint32 {
	length := uint64(g.To - g.From)
	at := make([]uint32, min(length, canon.Fanout))
	for i := range at {
		at[i] = g.From + uint32(uint64(i+1)*length/uint64(len(at)))
	}
	return at
}

func (g Game) showSteps(height int64, roots []canon.Digest) (Game, error) {
	at := g.Boundaries()
	if len(roots) != len(at) {
		return g, fmt.Errorf("%w: %d state roots, wanted %d", ErrMove, len(roots), len(at))
	}
	if last := roots[len(roots)-1]; last != g.After {
		return g, fmt.Errorf("%w: the last state root is %s, claimed before was %s", ErrMove, last.Short(), g.After.Short())
	}
	g.Steps = roots
	g.HashBytes += size(roots)
	return g.moved(height, Asserter, PickStep, "shows %d states between step %d and step %d", len(roots), g.From, g.To), nil
}

func (g Game) pickStep(height int64, i uint32) (Game, error) {
	at := g.Boundaries()
	if i >= uint32(len(at)) {
		return g, fmt.Errorf("%w: no state %d of %d", ErrMove, i, len(at))
	}
	g.After = g.Steps[i]
	g.To = at[i]
	if i > 0 {
		g.Prior, g.From = g.Steps[i-1], at[i-1]
	}
	g.Steps = nil
	return g.moved(height, Challenger, g.below(), "the state after step %d is the first that differs", g.To), nil
}

// leaves is the number of leaves of the tree that the game descends.
func (g Game) leaves() int {
	if g.aboutUpdate() {
		return int(g.Config.Parameters)
	}
	return int(g.Config.Operators)
}

func (g Game) aboutUpdate() bool { return int(g.Segment) == len(g.Config.Segments) }

func (g Game) root() canon.Digest { return canon.RootOf(g.leaves(), g.Top) }

// level is that of the nodes shown last, 0 for leaves.
func (g Game) level() int { return max(canon.Height(g.leaves())-len(g.Shown), 0) }

// visible returns the nodes shown last and the index of the first on its level.
func (g Game) visible() (nodes []canon.Digest, first uint32) {
	return g.Shown[len(g.Shown)-1], g.Node * canon.Fanout
}

func (g Game) showTree(height int64, t Tree) (Game, error) {
	n := g.leaves()
	g.Top, g.Node = t.Top, 0
	if g.aboutUpdate() && g.root() != g.Config.Update {
		return g, fmt.Errorf("%w: the tree is not the one of the committed update", ErrMove)
	}
	shown := t.Children
	switch {
	case n == 1 && len(t.Children) == 0:
		shown = []canon.Digest{t.Top}
	case !canon.VerifyChildren(t.Top, n, canon.Height(n), 0, t.Children):
		return g, fmt.Errorf("%w: these are not the children of the top of a tree of %d leaves", ErrMove, n)
	}
	g.Shown = [][]canon.Digest{shown}
	g.HashBytes += size(t.Children) + uint64(len(t.Top))
	what := fmt.Sprintf("the outputs of the %d operators of step %d", n, g.To)
	if g.aboutUpdate() {
		what = fmt.Sprintf("the update of %d parameters", n)
	}
	return g.moved(height, Asserter, PickNode, "shows %s, in %d parts", what, len(shown)), nil
}

func (g Game) pickNode(height int64, i uint32) (Game, error) {
	nodes, first := g.visible()
	if i >= uint32(len(nodes)) || g.level() == 0 {
		return g, fmt.Errorf("%w: no node %d to open on level %d", ErrMove, i, g.level())
	}
	g.Node = first + i
	low, high := g.under(g.level(), g.Node)
	return g.moved(height, Challenger, ShowNodes, "the first difference is in %s %d to %d", g.thing(), low, high), nil
}

// under returns the first and the last leaf below a node.
func (g Game) under(level int, node uint32) (low, high int) {
	low, high = int(node), int(node)+1
	for range level {
		low, high = low*canon.Fanout, high*canon.Fanout
	}
	return low, min(high, g.leaves()) - 1
}

func (g Game) thing() string {
	if g.aboutUpdate() {
		return "parameter"
	}
	return "operator"
}

func (g Game) showNodes(height int64, children []canon.Digest) (Game, error) {
	level, n := g.level(), g.leaves()
	parents := g.Shown[len(g.Shown)-1]
	if !canon.VerifyChildren(parents[g.Node%canon.Fanout], n, level, int(g.Node), children) {
		return g, fmt.Errorf("%w: these are not the children of node %d on level %d", ErrMove, g.Node, level)
	}
	g.Shown = append(g.Shown[:len(g.Shown):len(g.Shown)], children)
	g.HashBytes += size(children)
	return g.moved(height, Asserter, PickNode, "shows the %d parts below", len(children)), nil
}

// binds reports whether the challenger may say that the trace is right and the state after it is not.
func (g Game) binds() bool { return g.Stage == PickNode && len(g.Shown) == 1 && !g.aboutUpdate() }

func (g Game) leaf(height int64, l Leaf, r Referee) (Game, error) {
	nodes, first := g.visible()
	if l.Index >= uint32(len(nodes)) || g.level() != 0 {
		return g, fmt.Errorf("%w: no leaf %d on level %d", ErrMove, l.Index, g.level())
	}
	kind := Operator
	if g.aboutUpdate() {
		kind = Update
	}
	c := g.claim(kind, first+l.Index)
	c.Output = nodes[l.Index]
	return g.judge(height, c, l.Payload, r)
}

func (g Game) claim(k Kind, index uint32) Claim {
	c := Claim{
		Kind: k, Round: g.Config.Round, Unit: g.Config.Unit, Base: g.Config.Base,
		Step: g.From, Prior: g.Prior, After: g.After, Index: index,
	}
	if k == Operator || k == Binding {
		c.Trace = g.root()
	}
	return c
}

func (g Game) judge(height int64, c Claim, payload []byte, r Referee) (Game, error) {
	if len(payload) > MaxLeaf {
		return g, fmt.Errorf("%w: a payload of %d bytes, at most %d are taken", ErrMove, len(payload), MaxLeaf)
	}
	v := Verdict{Reason: Recomputed, Leaf: string(c.Kind), LeafBytes: uint64(len(payload)), Operator: c.Index}
	line := ""
	if ruling, err := r.Judge(c, payload); err != nil {
		v.Reason, line = BadLeaf, err.Error()
	} else {
		v.AsserterLies, line = !ruling.Right, ruling.What
	}
	return g.moved(height, Challenger, Over, "%.*s", maxLine, line).end(v), nil
}

const maxLine = 400 // characters of what a referee says

func size(ds []canon.Digest) uint64 { return uint64(len(ds)) * uint64(len(canon.Digest{})) }
