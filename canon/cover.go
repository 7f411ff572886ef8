package canon

import "fmt"

// Cover returns the digests which prove that some leaves, ascending and each once, belong to the root: for every level
// from the leaves up, the siblings of the nodes known there, in order. No leaves need no digests. It is shorter than a
// Proof of each leaf, the more so the closer the leaves are.
func (t *Tree) Cover(leaves []int) ([]Digest, error) {
	if err := checkCover(t.Len(), leaves); err != nil || len(leaves) == 0 {
		return nil, err
	}
	var out []Digest
	for l, known := 0, leaves; l < len(t.levels)-1; l++ {
		var above []int
		for len(known) > 0 {
			parent := known[0] / Fanout
			for i := Fanout * parent; i < min(Fanout*(parent+1), len(t.levels[l])); i++ {
				if len(known) > 0 && known[0] == i {
					known = known[1:]
				} else {
					out = append(out, t.levels[l][i])
				}
			}
			above = append(above, parent)
		}
		known = above
	}
	return out, nil
}

// Covered returns the root of the tree of n leaves of which those at the given indexes have these digests, and the rest
// is as a Cover of them says. It is an error if the cover is not one of exactly these leaves.
func Covered(n int, at []int, leaves, cover []Digest) (Digest, error) {
	if err := checkCover(n, at); err != nil {
		return Digest{}, err
	}
	if len(at) == 0 || len(leaves) != len(at) {
		return Digest{}, fmt.Errorf("canon: %d digests for %d leaves", len(leaves), len(at))
	}
	known := leaves
	for l := 0; l < Height(n); l++ {
		var above []Digest
		var parents []int
		for len(at) > 0 {
			parent := at[0] / Fanout
			var children [Fanout]Digest
			width := min(Fanout, Width(n, l)-Fanout*parent)
			for i := range width {
				switch {
				case len(at) > 0 && at[0] == Fanout*parent+i:
					children[i] = known[0]
					at, known = at[1:], known[1:]
				case len(cover) > 0:
					children[i], cover = cover[0], cover[1:]
				default:
					return Digest{}, fmt.Errorf("canon: the cover of leaves is too short")
				}
			}
			above, parents = append(above, Inner(l+1, children[:width])), append(parents, parent)
		}
		at, known = parents, above
	}
	if len(cover) > 0 {
		return Digest{}, fmt.Errorf("canon: the cover of leaves has %d digests too many", len(cover))
	}
	return RootOf(n, known[0]), nil
}

func checkCover(n int, leaves []int) error {
	for k, i := range leaves {
		if i < 0 || i >= n || k > 0 && i <= leaves[k-1] {
			return fmt.Errorf("canon: a cover of leaves out of order, or beyond the %d of the tree", n)
		}
	}
	return nil
}
