package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Apply makes a move. An illegal one is an error, and the game stays as it was. The referee is asked last: of how many parts an
// output is made, and to judge, when all that can be known of the move without it is right.
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
	case g.Stage == ShowStates && m.States != nil:
		return g.showStates(height, m.States.Digests)
	case g.Stage == PickState && m.Pick != nil:
		return g.pickState(height, m.Pick.Index)
	case g.Stage == ShowTree && m.Tree != nil:
		return g.showTree(height, *m.Tree)
	case g.Stage == PickNode && m.Pick != nil:
		return g.pickNode(height, m.Pick.Index, r)
	case g.Stage == ShowNodes && m.Nodes != nil:
		return g.showNodes(height, m.Nodes.Children)
	case m.Bind != nil && g.binds():
		return g.judge(height, g.claim(Binding, 0), m.Bind.Payload, r)
	case m.Point != nil && g.Stage == ShowTree && g.unmade():
		return g.point(height, *m.Point)
	case m.Leaf != nil && g.Stage == ShowLeaf && m.Leaf.Index == 0:
		return g.judge(height, g.last(), m.Leaf.Payload, r)
	case m.Leaf != nil && g.Stage == PickState && g.parted():
		return g.partLeaf(height, *m.Leaf, r)
	case m.Leaf != nil && g.Stage == PickNode:
		return g.nodeLeaf(height, *m.Leaf, r)
	}
	return g, fmt.Errorf("%w: the %s owes another", ErrMove, g.Turn)
}

// aboutUpdate reports whether the states of the unit are agreed, and the game is about what comes of them.
func (g Game) aboutUpdate() bool { return int(g.Segment) >= len(g.Config.Segments) }

func (g Game) aboutCarried() bool { return int(g.Segment) > len(g.Config.Segments) }

// unmade reports whether the game is about an update of which the asserter says that it is not finite.
func (g Game) unmade() bool { return g.aboutUpdate() && g.Config.Update.IsZero() }

func (g Game) point(height int64, p Point) (Game, error) {
	if p.Index >= g.Tree.Leaves || p.Part >= MaxParts {
		return g, fmt.Errorf("%w: no part %d of parameter %d", ErrMove, p.Part, p.Index)
	}
	g.Tree.Node, g.Parts = p.Index, Interval{From: p.Part, To: p.Part + 1}
	return g.moved(height, Asserter, ShowLeaf, "part %d of the update of parameter %d is not finite", p.Part, p.Index), nil
}

// last is the question of a game of which nothing is to be narrowed.
func (g Game) last() Claim {
	c := g.claim(Start, 0)
	if g.unmade() {
		c = g.claim(Update, g.Tree.Node)
		c.Part = g.Parts.From
	}
	return c
}

// kind is that of what the leaves of the tree are about.
func (g Game) kind() Kind {
	switch {
	case g.aboutCarried():
		return Carry
	case g.aboutUpdate():
		return Update
	}
	return Tile
}

// thing is what a leaf of the tree is called.
func (g Game) thing() string {
	if g.aboutUpdate() {
		return "parameter"
	}
	return "operator"
}

// parted reports whether a leaf of the tree is picked, and the parts it is made in are narrowed.
func (g Game) parted() bool { return g.Parts.To > 0 }

// interval is the one under way.
func (g Game) interval() Interval {
	if g.parted() {
		return g.Parts
	}
	return g.Steps
}

func (g Game) showStates(height int64, states []canon.Digest) (Game, error) {
	v, err := g.interval().show(states)
	if err != nil {
		return g, err
	}
	g.HashBytes += size(states)
	if g.parted() {
		g.Parts = v
		return g.moved(height, Asserter, PickState, "shows %d states between part %d and part %d of %s %d", len(states), v.From, v.To, g.thing(), g.Tree.Node), nil
	}
	g.Steps = v
	return g.moved(height, Asserter, PickState, "shows %d states between step %d and step %d", len(states), v.From, v.To), nil
}

func (g Game) pickState(height int64, i uint32) (Game, error) {
	v, err := g.interval().pick(i)
	switch {
	case err != nil:
		return g, err
	case !g.parted():
		g.Steps = v
		return g.moved(height, Challenger, g.below(), "the state after step %d is the first that differs", v.To), nil
	case v.single():
		return g, fmt.Errorf("%w: part %d must be brought to the referee", ErrMove, v.From)
	}
	g.Parts = v
	return g.moved(height, Challenger, ShowStates, "the first difference is in part %d to %d", v.From, v.To-1), nil
}

func (g Game) showTree(height int64, t Tree) (Game, error) {
	d := g.Tree
	d.Top = t.Top
	nodes := t.Children
	if d.Leaves == 1 && len(nodes) == 0 {
		nodes = []canon.Digest{t.Top}
	}
	d, err := d.show(nodes)
	if err != nil {
		return g, err
	}
	what := fmt.Sprintf("the outputs of the %d operators of step %d", d.Leaves, g.Steps.To)
	if g.aboutUpdate() {
		what = fmt.Sprintf("the update of %d parameters", d.Leaves)
		committed := g.Config.Update
		if g.aboutCarried() {
			what, committed = fmt.Sprintf("the state of %d parameters that is handed on", d.Leaves), g.Config.Carried
		}
		if d.root() != committed {
			return g, fmt.Errorf("%w: the tree is not the committed one", ErrMove)
		}
	}
	g.Tree = d
	g.HashBytes += size(t.Children) + uint64(len(t.Top))
	return g.moved(height, Asserter, PickNode, "shows %s, in %d parts", what, len(nodes)), nil
}

func (g Game) pickNode(height int64, i uint32, r Referee) (Game, error) {
	d, err := g.Tree.pick(i)
	if err != nil {
		return g, err
	}
	g.Tree = d
	if d.level() > 0 {
		low, high := d.under()
		return g.moved(height, Challenger, ShowNodes, "the first difference is in %s %d to %d", g.thing(), low, high), nil
	}
	n := r.Parts(g.claim(g.kind(), d.Node))
	if n <= 1 {
		return g, fmt.Errorf("%w: %s %d is made in one part, which must be brought to the referee", ErrMove, g.thing(), d.Node)
	}
	g.Parts = Interval{To: n, After: d.parent()}
	return g.moved(height, Challenger, ShowStates, "the first difference is in %s %d, made in %d parts", g.thing(), d.Node, n), nil
}

func (g Game) showNodes(height int64, nodes []canon.Digest) (Game, error) {
	d, err := g.Tree.show(nodes)
	if err != nil {
		return g, err
	}
	g.Tree = d
	g.HashBytes += size(nodes)
	return g.moved(height, Asserter, PickNode, "shows the %d parts below", len(nodes)), nil
}

// binds reports whether the challenger may say that the trace is right and the state after it is not.
func (g Game) binds() bool {
	return g.Stage == PickNode && len(g.Tree.Shown) == 1 && !g.aboutUpdate()
}

// nodeLeaf ends a game about what is made in one part.
func (g Game) nodeLeaf(height int64, l Leaf, r Referee) (Game, error) {
	d, err := g.Tree.pick(l.Index)
	switch {
	case err != nil:
		return g, err
	case d.level() != 0:
		return g, fmt.Errorf("%w: node %d on level %d is no leaf", ErrMove, d.Node, d.level())
	case r.Parts(g.claim(g.kind(), d.Node)) > 1:
		return g, fmt.Errorf("%w: %s %d is made in several parts, one of which must be picked", ErrMove, g.thing(), d.Node)
	}
	g.Tree = d
	return g.judge(height, g.question(), l.Payload, r)
}

// partLeaf ends a game about one of several parts.
func (g Game) partLeaf(height int64, l Leaf, r Referee) (Game, error) {
	v, err := g.Parts.pick(l.Index)
	switch {
	case err != nil:
		return g, err
	case !v.single():
		return g, fmt.Errorf("%w: there are states between part %d and part %d, which must be shown", ErrMove, v.From, v.To)
	}
	g.Parts = v
	return g.judge(height, g.question(), l.Payload, r)
}

// question is the claim about the picked part of the picked leaf.
func (g Game) question() Claim {
	c := g.claim(g.kind(), g.Tree.Node)
	c.Output = g.Tree.parent()
	if g.parted() {
		c.Part, c.Before, c.Output = g.Parts.From, g.Parts.Prior, g.Parts.After
	}
	return c
}

func (g Game) claim(k Kind, index uint32) Claim {
	c := Claim{
		Kind: k, Round: g.Config.Round, Unit: g.Config.Unit, Base: g.Config.Base,
		Step: uint32(g.Steps.From), Prior: g.Steps.Prior, After: g.Steps.After, Index: index, From: g.Config.From,
	}
	switch k {
	case Tile, Binding:
		c.Trace = g.Tree.root()
	case Carry:
		c.Update = g.Config.Update
	}
	return c
}

func (g Game) judge(height int64, c Claim, payload []byte, r Referee) (Game, error) {
	if len(payload) > MaxLeaf {
		return g, fmt.Errorf("%w: a payload of %d bytes, at most %d are taken", ErrMove, len(payload), MaxLeaf)
	}
	v := Verdict{Reason: Recomputed, Leaf: string(c.Kind), LeafBytes: uint64(len(payload)), Operator: c.Index, Part: c.Part}
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
