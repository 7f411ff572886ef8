package canon

import (
	"crypto/sha256"
	"fmt"
)

// Fanout is the number of children of an inner node of a Tree. A dispute descends one level a move, so a tree of a
// million leaves is walked in five.
const Fanout = 16

// Tree is a Merkle tree of fan-out 16 over an ordered list of leaves. Level 0 holds the leaves; the node i of level
// l+1 is the digest of its level and of the nodes 16i .. 16i+15 of level l (fewer at the right edge). The root binds
// the number of leaves. Leaf digests must come from Leaf or Sum, so that no leaf can be passed off as a node.
type Tree struct {
	levels [][]Digest
}

// Leaf digests the bytes of one leaf.
func Leaf(data []byte) Digest {
	h := sha256.New()
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(data)
	return Digest(h.Sum(nil))
}

// NewTree builds a tree. The leaves are kept, not copied.
func NewTree(leaves []Digest) *Tree {
	t := &Tree{levels: [][]Digest{leaves}}
	for l := 0; len(t.levels[l]) > 1; l++ {
		below := t.levels[l]
		above := make([]Digest, (len(below)+Fanout-1)/Fanout)
		for i := range above {
			above[i] = Inner(l+1, below[Fanout*i:min(Fanout*(i+1), len(below))])
		}
		t.levels = append(t.levels, above)
	}
	return t
}

// Inner is the digest of a node of a level above 0 with these children, of which there are 1 to 16.
func Inner(level int, children []Digest) Digest {
	message := make([]byte, 0, 2+Fanout*len(Digest{}))
	message = append(message, 1, byte(level))
	for i := range children {
		message = append(message, children[i][:]...)
	}
	return Digest(sha256.Sum256(message))
}

// Len is the number of leaves.
func (t *Tree) Len() int { return len(t.levels[0]) }

// Root binds the number of leaves and all of them. The root of no leaves is defined, and unlike any other.
func (t *Tree) Root() Digest {
	top := Digest{}
	if t.Len() > 0 {
		top = t.levels[len(t.levels)-1][0]
	}
	return RootOf(t.Len(), top)
}

// RootOf is the root of a tree of n leaves whose single topmost node is top.
func RootOf(n int, top Digest) Digest {
	h := sha256.New()
	_, _ = h.Write([]byte{2})
	var head [8]byte
	for i := range head {
		head[i] = byte(uint64(n) >> (8 * i))
	}
	_, _ = h.Write(head[:])
	_, _ = h.Write(top[:])
	return Digest(h.Sum(nil))
}

// Height is the level of the topmost node of a tree of n leaves: 0 for one leaf, 1 for 2 to 16, 2 up to 256.
func Height(n int) int {
	h := 0
	for w := 1; w < n; w *= Fanout {
		h++
	}
	return h
}

// Width is the number of nodes on a level of a tree of n leaves.
func Width(n, level int) int {
	for range level {
		n = (n + Fanout - 1) / Fanout
	}
	return n
}

// Top returns the single topmost node; with the number of leaves it gives the root (RootOf).
func (t *Tree) Top() Digest {
	if t.Len() == 0 {
		return Digest{}
	}
	return t.levels[len(t.levels)-1][0]
}

// Node returns the node i of a level.
func (t *Tree) Node(level, i int) (Digest, error) {
	if level < 0 || level >= len(t.levels) || i < 0 || i >= len(t.levels[level]) {
		return Digest{}, fmt.Errorf("canon: no node %d on level %d of a tree of %d leaves", i, level, t.Len())
	}
	return t.levels[level][i], nil
}

// Children returns the children of node i of a level above 0. The slice belongs to the tree.
func (t *Tree) Children(level, i int) ([]Digest, error) {
	if _, err := t.Node(level, i); err != nil || level == 0 {
		return nil, fmt.Errorf("canon: no inner node %d on level %d of a tree of %d leaves", i, level, t.Len())
	}
	below := t.levels[level-1]
	return below[Fanout*i : min(Fanout*(i+1), len(below))], nil
}

// Proof shows that a leaf belongs to a root: for every level from the leaves up, the other children of the node's
// parent, in order.
type Proof [][]Digest

// Proof returns the proof of leaf i.
func (t *Tree) Proof(i int) (Proof, error) {
	if i < 0 || i >= t.Len() {
		return nil, fmt.Errorf("canon: no leaf %d in a tree of %d", i, t.Len())
	}
	p := make(Proof, 0, len(t.levels)-1)
	for l := 1; l < len(t.levels); l++ {
		c, err := t.Children(l, i/Fanout)
		if err != nil {
			return nil, err
		}
		at := i % Fanout
		others := append(append(make([]Digest, 0, len(c)-1), c[:at]...), c[at+1:]...)
		p = append(p, others)
		i /= Fanout
	}
	return p, nil
}

// Verify reports whether the proof shows leaf to be leaf i of the n leaves under root.
func (p Proof) Verify(root Digest, n, i int, leaf Digest) bool {
	got, ok := p.Root(n, i, leaf)
	return ok && got == root
}

// Root is the root of the tree of n leaves of which the proof shows leaf to be leaf i. It is false for a proof that is
// none of such a leaf, whatever the root.
func (p Proof) Root(n, i int, leaf Digest) (Digest, bool) {
	if n < 1 || i < 0 || i >= n || len(p) != Height(n) {
		return Digest{}, false
	}
	node := leaf
	for l, others := range p {
		parent, at := i/Fanout, i%Fanout
		if len(others) > Fanout-1 || at > len(others) {
			return Digest{}, false
		}
		c := make([]Digest, 0, Fanout)
		c = append(append(append(c, others[:at]...), node), others[at:]...)
		if len(c) != min(Fanout, Width(n, l)-Fanout*parent) {
			return Digest{}, false
		}
		node, i = Inner(l+1, c), parent
	}
	return RootOf(n, node), true
}
