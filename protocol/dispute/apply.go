package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Apply makes a move. An illegal one is an error, and the game stays as it was. The referee is asked only by a move of
// which Asks says so, and may be nil otherwise.
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

// Asks reports whether a move, if it is legal, needs the referee: to learn of what tiles an output is made, or to judge.
func (g Game) Asks(m Move) bool {
	return m.Final() || m.Tree != nil && g.tiled() || m.Pick != nil && g.Stage == PickNode && g.descent().level() == 0
}

func (g Game) play(height int64, m Move, r Referee) (Game, error) {
	switch {
	case g.Stage == ShowSteps && m.Steps != nil:
		return g.showSteps(height, m.Steps.Roots)
	case g.Stage == PickStep && m.Pick != nil:
		return g.pickStep(height, m.Pick.Index)
	case g.Stage == ShowTree && m.Tree != nil:
		return g.showTree(height, *m.Tree, r)
	case g.Stage == PickNode && m.Pick != nil:
		return g.pickNode(height, m.Pick.Index, r)
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

func (g Game) aboutUpdate() bool { return int(g.Segment) == len(g.Config.Segments) }

// tiled reports whether an operator is picked and the descent over the tiles of its output has begun.
func (g Game) tiled() bool { return g.Output.Leaves > 0 }

// descent is the one under way.
func (g Game) descent() Descent {
	if g.tiled() {
		return g.Output
	}
	return g.Tree
}

func (g Game) descended(d Descent) Game {
	if g.tiled() {
		d.Shown = d.Shown[max(len(d.Shown)-1, 0):] // nothing is proven against the rows above
		g.Output = d
	} else {
		g.Tree = d
	}
	return g
}

// claimed is the output root of the picked operator, or the payload of the picked parameter.
func (g Game) claimed() canon.Digest { return g.Tree.parent() }

func (g Game) showTree(height int64, t Tree, r Referee) (Game, error) {
	d := g.descent()
	d.Top = t.Top
	nodes := t.Children
	if d.Leaves == 1 && len(nodes) == 0 {
		nodes = []canon.Digest{t.Top}
	}
	d, err := d.show(nodes)
	if err != nil {
		return g, err
	}
	what := fmt.Sprintf("the outputs of the %d operators of step %d", d.Leaves, g.To)
	switch {
	case g.tiled():
		what = fmt.Sprintf("the output of operator %d, of %d tiles", g.Tree.Node, d.Leaves)
		if r.Root(g.Tree.Node, d.root()) != g.claimed() {
			return g, fmt.Errorf("%w: the tree is not the one of the output that was shown", ErrMove)
		}
	case g.aboutUpdate():
		what = fmt.Sprintf("the update of %d parameters", d.Leaves)
		if d.root() != g.Config.Update {
			return g, fmt.Errorf("%w: the tree is not the one of the committed update", ErrMove)
		}
	}
	g = g.descended(d)
	g.HashBytes += size(t.Children) + uint64(len(t.Top))
	return g.moved(height, Asserter, PickNode, "shows %s, in %d parts", what, len(nodes)), nil
}

func (g Game) pickNode(height int64, i uint32, r Referee) (Game, error) {
	d, err := g.descent().pick(i)
	if err != nil {
		return g, err
	}
	if d.level() == 0 {
		return g.pickOperator(height, d, r)
	}
	low, high := d.under()
	return g.descended(d).moved(height, Challenger, ShowNodes, "the first difference is in %s %d to %d", g.thing(), low, high), nil
}

// pickOperator begins the descent over the tiles of an output that has several.
func (g Game) pickOperator(height int64, d Descent, r Referee) (Game, error) {
	if g.tiled() || g.aboutUpdate() {
		return g, fmt.Errorf("%w: the %s must be brought to the referee", ErrMove, g.thing())
	}
	n := r.Tiles(d.Node)
	if n <= 1 {
		return g, fmt.Errorf("%w: operator %d has one tile, which must be brought to the referee", ErrMove, d.Node)
	}
	g.Tree, g.Output = d, Descent{Leaves: n}
	return g.moved(height, Challenger, ShowTree, "the first difference is in operator %d", d.Node), nil
}

func (g Game) thing() string {
	switch {
	case g.tiled():
		return "tile"
	case g.aboutUpdate():
		return "parameter"
	}
	return "operator"
}

func (g Game) showNodes(height int64, nodes []canon.Digest) (Game, error) {
	d, err := g.descent().show(nodes)
	if err != nil {
		return g, err
	}
	g = g.descended(d)
	g.HashBytes += size(nodes)
	return g.moved(height, Asserter, PickNode, "shows the %d parts below", len(nodes)), nil
}

// binds reports whether the challenger may say that the trace is right and the state after it is not.
func (g Game) binds() bool {
	return g.Stage == PickNode && len(g.Tree.Shown) == 1 && !g.tiled() && !g.aboutUpdate()
}

func (g Game) leaf(height int64, l Leaf, r Referee) (Game, error) {
	d, err := g.descent().pick(l.Index)
	if err != nil {
		return g, err
	}
	if d.level() != 0 {
		return g, fmt.Errorf("%w: node %d on level %d is no leaf", ErrMove, d.Node, d.level())
	}
	g = g.descended(d)
	if !g.tiled() && !g.aboutUpdate() && r.Tiles(d.Node) > 1 {
		return g, fmt.Errorf("%w: operator %d has several tiles, one of which must be picked", ErrMove, d.Node)
	}
	return g.judge(height, g.question(), l.Payload, r)
}

// question is the claim about the picked leaf.
func (g Game) question() Claim {
	if g.aboutUpdate() {
		c := g.claim(Update, g.Tree.Node)
		c.Output = g.claimed()
		return c
	}
	c := g.claim(Tile, g.Tree.Node)
	c.Tile, c.Output = g.Output.Node, g.descent().parent()
	return c
}

func (g Game) claim(k Kind, index uint32) Claim {
	c := Claim{
		Kind: k, Round: g.Config.Round, Unit: g.Config.Unit, Base: g.Config.Base,
		Step: g.From, Prior: g.Prior, After: g.After, Index: index,
	}
	if k == Tile || k == Binding {
		c.Trace = g.Tree.root()
	}
	return c
}

func (g Game) judge(height int64, c Claim, payload []byte, r Referee) (Game, error) {
	if len(payload) > MaxLeaf {
		return g, fmt.Errorf("%w: a payload of %d bytes, at most %d are taken", ErrMove, len(payload), MaxLeaf)
	}
	v := Verdict{Reason: Recomputed, Leaf: string(c.Kind), LeafBytes: uint64(len(payload)), Operator: c.Index, Tile: c.Tile}
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
