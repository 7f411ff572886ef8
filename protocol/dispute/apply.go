package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Apply makes a move. An illegal one is an error, and the dispute stays as it was. The referee is asked last, after
// all checks that do not need it: for the number of parts of an output, and for its ruling.
func (g Dispute) Apply(height int64, from string, m Move, r Referee) (Dispute, error) {
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
	next, err := ply{g, height, r}.play(m)
	if err != nil {
		return g, err
	}
	return next, nil
}

// ply is one move, made at a height. It embeds the game before it, which its methods change a copy of.
type ply struct {
	Dispute
	height  int64
	referee Referee
}

func (g ply) play(m Move) (Dispute, error) {
	switch {
	case g.Stage == ShowStates && m.States != nil:
		return g.showStates(m.States.Digests)
	case g.Stage == PickState && m.Pick != nil:
		return g.pickState(m.Pick.Index)
	case g.Stage == ShowTree && m.Tree != nil:
		return g.showTree(*m.Tree)
	case g.Stage == PickNode && m.Pick != nil:
		return g.pickNode(m.Pick.Index)
	case g.Stage == ShowNodes && m.Nodes != nil:
		return g.showNodes(m.Nodes.Children)
	case m.Bind != nil && g.binds():
		return g.judge(g.claim(Binding, 0), m.Bind.Payload)
	case m.Point != nil && g.Stage == ShowTree && g.nonFinite():
		return g.point(*m.Point)
	case m.Leaf != nil && g.Stage == ShowLeaf && m.Leaf.Index == 0:
		return g.judge(g.last(), m.Leaf.Payload)
	case m.Leaf != nil && g.Stage == PickState && g.parted():
		return g.partLeaf(*m.Leaf)
	case m.Leaf != nil && g.Stage == PickNode:
		return g.nodeLeaf(*m.Leaf)
	}
	return g.Dispute, fmt.Errorf("%w: the %s owes another", ErrMove, g.Turn)
}

// aboutUpdate reports whether the states of the unit are agreed, and the dispute is about its update or its carried
// state.
func (g Dispute) aboutUpdate() bool { return int(g.Segment) >= len(g.Config.Segments) }

func (g Dispute) aboutCarried() bool { return int(g.Segment) > len(g.Config.Segments) }

// nonFinite reports whether the dispute is about an update which the asserter claims is not finite.
func (g Dispute) nonFinite() bool {
	return g.aboutUpdate() && !g.aboutCarried() && g.Config.Update.IsZero()
}

func (g ply) point(p PointNonFinite) (Dispute, error) {
	if p.Index >= g.Tree.Leaves || p.Part >= MaxParts {
		return g.Dispute, fmt.Errorf("%w: no part %d of parameter %d", ErrMove, p.Part, p.Index)
	}
	g.Tree.Node, g.Parts = p.Index, Interval{From: p.Part, To: p.Part + 1}
	return g.moved(g.height, Asserter, ShowLeaf, Record{Event: Pointed, Index: p.Index, From: p.Part}), nil
}

// last is the question of a game of which nothing is to be narrowed.
func (g Dispute) last() Claim {
	c := g.claim(Start, 0)
	if g.nonFinite() {
		c = g.claim(Update, g.Tree.Node)
		c.Part = g.Parts.From
	}
	return c
}

// kind is the kind of claim about a leaf of the tree.
func (g Dispute) kind() Kind {
	switch {
	case g.aboutCarried():
		return Carry
	case g.aboutUpdate():
		return Update
	}
	return Tile
}

// thing is the name of a leaf of the tree.
func (g Dispute) thing() string {
	if g.aboutUpdate() {
		return "parameter"
	}
	return "operator"
}

// parted reports whether a leaf of the tree is picked, and its parts are narrowed.
func (g Dispute) parted() bool { return g.Parts.To > 0 }

// interval is the one under way.
func (g Dispute) interval() Interval {
	if g.parted() {
		return g.Parts
	}
	return g.Steps
}

func (g ply) showStates(states []canon.Digest) (Dispute, error) {
	v, err := g.interval().show(states)
	if err != nil {
		return g.Dispute, err
	}
	g.HashBytes += size(states)
	if g.parted() {
		g.Parts = v
		r := Record{Event: ShownParts, Index: g.Tree.Node, From: v.From, To: v.To, Count: uint64(len(states))}
		return g.moved(g.height, Asserter, PickState, r), nil
	}
	g.Steps = v
	r := Record{Event: ShownSteps, From: v.From, To: v.To, Count: uint64(len(states))}
	return g.moved(g.height, Asserter, PickState, r), nil
}

func (g ply) pickState(i uint32) (Dispute, error) {
	v, err := g.interval().pick(i)
	switch {
	case err != nil:
		return g.Dispute, err
	case !g.parted():
		g.Steps = v
		return g.moved(g.height, Challenger, g.below(), Record{Event: PickedStep, To: v.To}), nil
	case v.single():
		return g.Dispute, fmt.Errorf("%w: part %d must be brought to the referee", ErrMove, v.From)
	}
	g.Parts = v
	return g.moved(g.height, Challenger, ShowStates, Record{Event: PickedParts, From: v.From, To: v.To - 1}), nil
}

func (g ply) showTree(t Tree) (Dispute, error) {
	d := g.Tree
	d.Top = t.Top
	nodes := t.Children
	if d.Leaves == 1 && len(nodes) == 0 {
		nodes = []canon.Digest{t.Top}
	}
	d, err := d.show(nodes)
	if err != nil {
		return g.Dispute, err
	}
	if g.aboutUpdate() {
		committed := g.Config.Update
		if g.aboutCarried() {
			committed = g.Config.Carried
		}
		if d.root() != committed {
			return g.Dispute, fmt.Errorf("%w: the tree is not the committed one", ErrMove)
		}
	}
	g.Tree = d
	g.HashBytes += size(t.Children) + uint64(len(t.Top))
	return g.moved(g.height, Asserter, PickNode, Record{Event: ShownTree, Count: uint64(len(nodes))}), nil
}

func (g ply) pickNode(i uint32) (Dispute, error) {
	d, err := g.Tree.pick(i)
	if err != nil {
		return g.Dispute, err
	}
	g.Tree = d
	if d.level() > 0 {
		low, high := d.under()
		r := Record{Event: PickedNode, From: uint64(low), To: uint64(high)}
		return g.moved(g.height, Challenger, ShowNodes, r), nil
	}
	n := g.referee.Parts(g.claim(g.kind(), d.Node))
	if n <= 1 {
		return g.Dispute, fmt.Errorf("%w: %s %d is made in one part, which must be brought to the referee", ErrMove,
			g.thing(), d.Node)
	}
	g.Parts = Interval{To: n, After: d.parent()}
	return g.moved(g.height, Challenger, ShowStates, Record{Event: PickedLeaf, Index: d.Node, Count: n}), nil
}

func (g ply) showNodes(nodes []canon.Digest) (Dispute, error) {
	d, err := g.Tree.show(nodes)
	if err != nil {
		return g.Dispute, err
	}
	g.Tree = d
	g.HashBytes += size(nodes)
	return g.moved(g.height, Asserter, PickNode, Record{Event: ShownNodes, Count: uint64(len(nodes))}), nil
}

// binds reports whether the challenger may claim that the trace is right and the state after it is not.
func (g Dispute) binds() bool {
	return g.Stage == PickNode && len(g.Tree.Shown) == 1 && !g.aboutUpdate()
}

// nodeLeaf ends a dispute about a leaf that is made in one part.
func (g ply) nodeLeaf(l Leaf) (Dispute, error) {
	d, err := g.Tree.pick(l.Index)
	switch {
	case err != nil:
		return g.Dispute, err
	case d.level() != 0:
		return g.Dispute, fmt.Errorf("%w: node %d on level %d is no leaf", ErrMove, d.Node, d.level())
	case g.referee.Parts(g.claim(g.kind(), d.Node)) > 1:
		return g.Dispute, fmt.Errorf("%w: %s %d is made in several parts, one of which must be picked", ErrMove, g.thing(),
			d.Node)
	}
	g.Tree = d
	return g.judge(g.question(), l.Payload)
}

// partLeaf ends a dispute about one of several parts.
func (g ply) partLeaf(l Leaf) (Dispute, error) {
	v, err := g.Parts.pick(l.Index)
	switch {
	case err != nil:
		return g.Dispute, err
	case !v.single():
		return g.Dispute, fmt.Errorf("%w: there are states between part %d and part %d, which must be shown", ErrMove, v.From,
			v.To)
	}
	g.Parts = v
	return g.judge(g.question(), l.Payload)
}

// question is the claim about the picked part of the picked leaf.
func (g Dispute) question() Claim {
	c := g.claim(g.kind(), g.Tree.Node)
	c.Output = g.Tree.parent()
	if g.parted() {
		c.Part, c.Before, c.Output = g.Parts.From, g.Parts.Prior, g.Parts.After
	}
	return c
}

func (g Dispute) claim(k Kind, index uint32) Claim {
	c := Claim{
		Kind: k, Round: g.Config.Round, Unit: g.Config.Unit, Base: g.Config.Base,
		Step: uint32(g.Steps.From), Prior: g.Steps.Prior, After: g.Steps.After, Index: index, From: g.Config.From,
		Links: g.Config.Links,
	}
	switch k {
	case Tile, Binding:
		c.Trace = g.Tree.root()
	case Carry:
		c.Update, c.Segments = g.Config.Update, g.Config.Segments
	}
	return c
}

func (g ply) judge(c Claim, payload []byte) (Dispute, error) {
	if len(payload) > MaxLeaf {
		return g.Dispute, fmt.Errorf("%w: a payload of %d bytes, at most %d are taken", ErrMove, len(payload), MaxLeaf)
	}
	v := Verdict{Reason: Recomputed, Leaf: string(c.Kind), LeafBytes: uint64(len(payload)), Operator: c.Index,
		Part: c.Part}
	if ruling, err := g.referee.Judge(c, payload); err != nil {
		v.Reason = BadLeaf
	} else {
		v.AsserterLies, v.Computed, v.Claimed = !ruling.Right, ruling.Computed, c.claimed()
	}
	return g.moved(g.height, Challenger, Over, Record{Event: Judged}).end(v), nil
}

// claimed is the digest that the asserter claims.
func (c Claim) claimed() canon.Digest {
	if c.Kind == Start || c.Kind == Binding {
		return c.After
	}
	return c.Output
}

func size(ds []canon.Digest) uint64 { return uint64(len(ds)) * uint64(len(canon.Digest{})) }
