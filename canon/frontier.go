package canon

import "fmt"

// Frontier is a tree that grows leaf by leaf, in the fewest digests that its root can be computed from: of each level,
// the full nodes whose parent is not full yet. The zero Frontier has no leaves.
type Frontier struct {
	leaves int
	levels [][]Digest // fewer than Fanout nodes each
}

// NewFrontier returns the frontier of a number of leaves from its Nodes, which are as many as the sum of the digits of
// the number, to the base Fanout.
func NewFrontier(leaves int, nodes []Digest) (*Frontier, error) {
	f := &Frontier{leaves: leaves}
	for rest := leaves; rest > 0; rest /= Fanout {
		n := rest % Fanout
		if n > len(nodes) {
			return nil, fmt.Errorf("canon: %d digests are too few for a tree that has grown to %d leaves", len(nodes), leaves)
		}
		f.levels = append(f.levels, append(make([]Digest, 0, Fanout), nodes[:n]...))
		nodes = nodes[n:]
	}
	if leaves < 0 || len(nodes) > 0 {
		return nil, fmt.Errorf("canon: %d digests too many for a tree that has grown to %d leaves", len(nodes), leaves)
	}
	return f, nil
}

// Nodes lists the digests, from the leaves up, on each level from left to right.
func (f *Frontier) Nodes() []Digest {
	var out []Digest
	for _, l := range f.levels {
		out = append(out, l...)
	}
	return out
}

// Push adds a leaf.
func (f *Frontier) Push(leaf Digest) {
	f.leaves++
	for l, node := 0, leaf; ; l++ {
		if l == len(f.levels) {
			f.levels = append(f.levels, make([]Digest, 0, Fanout))
		}
		f.levels[l] = append(f.levels[l], node)
		if len(f.levels[l]) < Fanout {
			return
		}
		node = Inner(l+1, f.levels[l])
		f.levels[l] = f.levels[l][:0]
	}
}

// Root is that of the Tree over the leaves.
func (f *Frontier) Root() Digest {
	var right []Digest // the node over all that is below, if anything is
	for l, nodes := range f.levels {
		nodes = append(nodes[:len(nodes):len(nodes)], right...)
		if l == Height(f.leaves) {
			return RootOf(f.leaves, nodes[0])
		}
		if right = nil; len(nodes) > 0 {
			right = []Digest{Inner(l+1, nodes)}
		}
	}
	if len(right) > 0 {
		return RootOf(f.leaves, right[0])
	}
	return RootOf(0, Digest{})
}

// Frontier returns the Nodes of the Frontier after some of the leaves.
func (t *Tree) Frontier(leaves int) []Digest {
	var out []Digest
	for l, full := 0, leaves; full > 0; l, full = l+1, full/Fanout {
		out = append(out, t.levels[l][full/Fanout*Fanout:full]...)
	}
	return out
}

// CoverSize is the number of digests that a Cover of some of n leaves has, or an error like Cover's.
func CoverSize(n int, leaves []int) (size int, err error) {
	if err := checkCover(n, leaves); err != nil || len(leaves) == 0 {
		return 0, err
	}
	for l, known := 0, leaves; l < Height(n); l++ {
		var above []int
		for _, i := range known {
			if k := len(above) - 1; k < 0 || above[k] != i/Fanout {
				above = append(above, i/Fanout)
				size += min(Fanout, Width(n, l)-i/Fanout*Fanout)
			}
			size--
		}
		known = above
	}
	return size, nil
}
