package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Descent is the way down a tree of the asserter's to the first leaf in which the parties differ.
type Descent struct {
	Leaves uint32       `cbor:"1,keyasint"`
	Top    canon.Digest `cbor:"2,keyasint"`           // topmost node
	Shown  []Row        `cbor:"3,keyasint,omitempty"` // on the way down
	Node   uint32       `cbor:"4,keyasint"`           // picked from the last row, from the first node of its level
}

// Row is nodes of one level that the asserter has shown: all that are below one node above.
type Row struct {
	Level uint32         `cbor:"1,keyasint"`
	First uint32         `cbor:"2,keyasint"` // index of the first on its level
	Nodes []canon.Digest `cbor:"3,keyasint"`
}

func (r Row) has(level, i int) bool {
	return int(r.Level) == level && i >= int(r.First) && i < int(r.First)+len(r.Nodes)
}

func (d Descent) begun() bool        { return len(d.Shown) > 0 }
func (d Descent) last() Row          { return d.Shown[len(d.Shown)-1] }
func (d Descent) root() canon.Digest { return canon.RootOf(int(d.Leaves), d.Top) }

// level is that of the row shown last, 0 for leaves.
func (d Descent) level() int {
	if !d.begun() {
		return canon.Height(int(d.Leaves))
	}
	return int(d.last().Level)
}

// next is the row to be shown next: the nodes below the picked one, two levels down while three or more are left. So a
// tree of a million leaves is descended in four moves, none of which shows more than 256 digests.
func (d Descent) next() (level, first, n int) {
	from := d.level()
	level = from - 1
	if from >= 3 {
		level--
	}
	level = max(level, 0)
	first, width := int(d.Node), 1
	for range from - level {
		first, width = first*canon.Fanout, width*canon.Fanout
	}
	return level, first, min(width, canon.Width(int(d.Leaves), level)-first)
}

// parent is the digest of the picked node.
func (d Descent) parent() canon.Digest {
	if !d.begun() {
		return d.Top
	}
	return d.last().Nodes[d.Node-d.last().First]
}

// show takes the next row, if its nodes are those below the picked node.
func (d Descent) show(nodes []canon.Digest) (Descent, error) {
	level, first, n := d.next()
	if len(nodes) != n {
		return d, fmt.Errorf("%w: %d nodes, wanted %d", ErrMove, len(nodes), n)
	}
	above := nodes
	for l := level; l < d.level(); l++ {
		above = parents(l+1, above)
	}
	if above[0] != d.parent() {
		return d, fmt.Errorf("%w: these are not the nodes below node %d on level %d of a tree of %d leaves", ErrMove, d.Node,
			d.level(), d.Leaves)
	}
	d.Shown = append(d.Shown[:len(d.Shown):len(d.Shown)], Row{Level: uint32(level), First: uint32(first), Nodes: nodes})
	d.Node = 0
	return d, nil
}

// parents are the nodes of a level from the children, of which the first is the first child of its parent.
func parents(level int, children []canon.Digest) []canon.Digest {
	var out []canon.Digest
	for i := 0; i < len(children); i += canon.Fanout {
		out = append(out, canon.Inner(level, children[i:min(i+canon.Fanout, len(children))]))
	}
	return out
}

// pick chooses node i of the last row.
func (d Descent) pick(i uint32) (Descent, error) {
	if !d.begun() || i >= uint32(len(d.last().Nodes)) {
		return d, fmt.Errorf("%w: no node %d among those shown", ErrMove, i)
	}
	d.Node = d.last().First + i
	return d, nil
}

// under returns the first and the last leaf below the picked node.
func (d Descent) under() (low, high int) {
	low, high = int(d.Node), int(d.Node)+1
	for range d.level() {
		low, high = low*canon.Fanout, high*canon.Fanout
	}
	return low, min(high, int(d.Leaves)) - 1
}

// row is a party's own version of a row.
func row(t *canon.Tree, level, first, n int) ([]canon.Digest, error) {
	out := make([]canon.Digest, n)
	for i := range out {
		var err error
		if out[i], err = t.Node(level, first+i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// node returns a node that the asserter has shown, itself or by all of its children.
func (d Descent) node(level, i int) (canon.Digest, bool) {
	for _, r := range d.Shown {
		if r.has(level, i) {
			return r.Nodes[i-int(r.First)], true
		}
		if child := i * canon.Fanout; r.has(level-1, child) {
			at := child - int(r.First)
			return canon.Inner(level, r.Nodes[at:min(at+canon.Fanout, len(r.Nodes))]), true
		}
	}
	return canon.Digest{}, false
}

// proof shows that a leaf to the left of the first difference is under the asserter's root. Its digests are those that
// the asserter has shown; in subtrees that both parties agree on, they are the challenger's own.
func (d Descent) proof(mine *canon.Tree, leaf int) (canon.Proof, error) {
	n := int(d.Leaves)
	p := canon.Proof{}
	for level, at := 0, leaf; level < canon.Height(n); level, at = level+1, at/canon.Fanout {
		first := at / canon.Fanout * canon.Fanout
		var others []canon.Digest
		for i := first; i < min(first+canon.Fanout, canon.Width(n, level)); i++ {
			if i == at {
				continue
			}
			sibling, ok := d.node(level, i)
			if !ok {
				var err error
				if sibling, err = mine.Node(level, i); err != nil {
					return nil, err
				}
			}
			others = append(others, sibling)
		}
		p = append(p, others)
	}
	own, err := mine.Node(0, leaf)
	if err != nil {
		return nil, err
	}
	if !p.Verify(d.root(), n, leaf, own) {
		return nil, fmt.Errorf("%w: leaf %d is not to the left of the first difference", ErrAgree, leaf)
	}
	return p, nil
}
