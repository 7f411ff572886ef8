package lower

import (
	"slices"

	"github.com/starling-network/starling/compute/tensor"
)

// assign gives every store of the arena an offset such that stores that live at the same time never overlap. A store
// lives from the step that makes it to the last one that reads it; the result of a group may take over the memory of a
// store that dies with the group.
func (pl *Plan) assign() {
	var a arena
	for i := range pl.Steps {
		heirs, dying := pl.heirs(i, pl.dying(i))
		for _, w := range pl.Steps[i].writes {
			s := &pl.Stores[w]
			if s.Class != InArena {
				continue
			}
			if d, ok := heirs[w]; ok {
				s.Offset = pl.Stores[d].Offset
			} else {
				s.Offset = a.take(tensor.AlignUp(s.Bytes))
			}
			if s.Last < 0 { // nothing reads it
				dying = append(dying, w)
			}
		}
		for _, d := range dying {
			a.release(pl.Stores[d].Offset, tensor.AlignUp(pl.Stores[d].Bytes))
		}
	}
	pl.Arena = a.size
}

// dying lists the stores of the arena that step i is the last to read.
func (pl *Plan) dying(i int) []int {
	var list []int
	for _, r := range pl.Steps[i].reads {
		if s := &pl.Stores[r]; s.Class == InArena && s.Last == i {
			list = append(list, r)
		}
	}
	return list
}

// heirs maps results of step i to the dying stores whose memory they take over, and returns the other dying stores. A
// store and its heir have the same size, and the operator that makes an element of the heir is the last to read the
// same element of the store, or comes after it.
func (pl *Plan) heirs(i int, dying []int) (heirs map[int]int, others []int) {
	if len(dying) == 0 {
		return nil, dying
	}
	heirs = map[int]int{}
	over := pl.Steps[i].overwrites(pl.Stores)
	for _, w := range pl.Steps[i].writes {
		k := slices.IndexFunc(dying, func(d int) bool {
			return pl.Stores[d].Bytes == pl.Stores[w].Bytes && over(d, w)
		})
		if k >= 0 && pl.Stores[w].Class == InArena {
			heirs[w] = dying[k]
			dying = slices.Delete(dying, k, k+1)
		}
	}
	return heirs, dying
}

// overwrites reports of a store that a step reads and one that it writes, of the same size, whether they may be the
// same memory.
func (st *Step) overwrites(stores []Store) func(read, written int) bool {
	if st.Group == nil {
		return func(read, _ int) bool { return slices.Contains(st.over, read) }
	}
	uses, makes := st.Group.uses(stores), st.Group.makes()
	return func(read, written int) bool { return uses[read] <= makes[written] }
}

// overwritesOne is overwrites for two stores alone, without tables of all of them.
func (st *Step) overwritesOne(stores []Store, read, written int) bool {
	if st.Group == nil {
		return slices.Contains(st.over, read)
	}
	return st.Group.use(stores, read) <= st.Group.maker(written)
}

// An arena hands out ranges of one block of memory that grows as needed. Its free ranges are in order and never touch.
type arena struct {
	size int
	free []extent
}

type extent struct{ offset, bytes int }

// take returns the offset of a range: of the smallest free one that is large enough.
func (a *arena) take(bytes int) int {
	best := -1
	for i, e := range a.free {
		if e.bytes >= bytes && (best < 0 || e.bytes < a.free[best].bytes) {
			best = i
		}
	}
	if best >= 0 {
		e := &a.free[best]
		offset := e.offset
		e.offset += bytes
		if e.bytes -= bytes; e.bytes == 0 {
			a.free = slices.Delete(a.free, best, best+1)
		}
		return offset
	}
	offset := a.size
	if n := len(a.free); n > 0 && a.free[n-1].offset+a.free[n-1].bytes == a.size {
		offset = a.free[n-1].offset // grow the last free range
		a.free = a.free[:n-1]
	}
	a.size = offset + bytes
	return offset
}

// release gives a range back.
func (a *arena) release(offset, bytes int) {
	i, _ := slices.BinarySearchFunc(a.free, offset, func(e extent, at int) int { return e.offset - at })
	a.free = slices.Insert(a.free, i, extent{offset, bytes})
	if i+1 < len(a.free) && offset+bytes == a.free[i+1].offset {
		a.free[i].bytes += a.free[i+1].bytes
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].offset+a.free[i-1].bytes == offset {
		a.free[i-1].bytes += a.free[i].bytes
		a.free = slices.Delete(a.free, i, i+1)
	}
}
