package program

import (
	"fmt"
	"math"
	"slices"
)

// assign gives every store of the arena an offset such that stores that live at the same time never overlap. A store
// lives from the step that makes it to the last one that reads it; the result of a group may take over the memory of a
// store that dies with the group.
func (pl *plan) assign() {
	var a arena
	for i := range pl.steps {
		heirs, dying := pl.heirs(i, pl.dying(i))
		for _, w := range pl.steps[i].writes {
			s := &pl.stores[w]
			if s.class != inArena {
				continue
			}
			if d, ok := heirs[w]; ok {
				s.offset = pl.stores[d].offset
			} else {
				s.offset = a.take(alignUp(s.bytes))
			}
			if s.last < 0 { // nobody reads it
				dying = append(dying, w)
			}
		}
		for _, d := range dying {
			a.release(pl.stores[d].offset, alignUp(pl.stores[d].bytes))
		}
	}
	pl.arena = a.size
}

// dying lists the stores of the arena that step i is the last to read.
func (pl *plan) dying(i int) []int {
	var list []int
	for _, r := range pl.steps[i].reads {
		if s := &pl.stores[r]; s.class == inArena && s.last == i {
			list = append(list, r)
		}
	}
	return list
}

// heirs maps results of step i to the dying stores whose memory they take over, and returns the other dying stores. A
// store and its heir have the same size, and the operator that makes an element of the heir is the last to read the
// same element of the store, or comes after it.
func (pl *plan) heirs(i int, dying []int) (heirs map[int]int, others []int) {
	if len(dying) == 0 {
		return nil, dying
	}
	heirs = map[int]int{}
	over := pl.steps[i].overwrites(pl.stores)
	for _, w := range pl.steps[i].writes {
		k := slices.IndexFunc(dying, func(d int) bool {
			return pl.stores[d].bytes == pl.stores[w].bytes && over(d, w)
		})
		if k >= 0 && pl.stores[w].class == inArena {
			heirs[w] = dying[k]
			dying = slices.Delete(dying, k, k+1)
		}
	}
	return heirs, dying
}

// overwrites reports of a store that a step reads and one that it writes, of the same size, whether they may be the
// same memory.
func (st *step) overwrites(stores []store) func(read, written int) bool {
	if st.group == nil {
		return func(read, _ int) bool { return slices.Contains(st.over, read) }
	}
	uses, makes := st.group.uses(stores), st.group.makes()
	return func(read, written int) bool { return uses[read] <= makes[written] }
}

// mayShare reports whether the input that operator v is and output i may be the same memory.
func (pl *plan) mayShare(v, i int) bool {
	read, written := -1, -1
	for s := range pl.stores {
		switch st := &pl.stores[s]; {
		case st.class == inInput && st.index == v:
			read = s
		case st.class == inOutput && st.index == i:
			written = s
		}
	}
	if read < 0 || written < 0 || pl.stores[read].bytes != pl.stores[written].bytes {
		return false
	}
	last, made := pl.stores[read].last, pl.stores[written].made
	return last < made || last == made && pl.steps[made].overwrites(pl.stores)(read, written)
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

// peakBytes is the memory of a run of the plan: arena, inputs, outputs, constants and the scratch of the threads.
func (pl *plan) peakBytes(threads int) int64 {
	sum := int64(pl.arena) + int64(pl.scratch)*int64(threads)
	for _, s := range pl.stores {
		if s.class != inArena {
			sum += int64(s.bytes)
		}
	}
	return sum
}

// tracePeak is the memory of a Trace: the values that are alive at once, at worst. Inputs, constants and outputs stay.
func (p *Program) tracePeak() int64 {
	last := make([]int, len(p.Ops))
	for i := range p.Ops {
		last[i] = i
		for _, v := range p.Ops[i].In {
			last[v] = i
		}
	}
	dies := make([][]int, len(p.Ops))
	for v, i := range last {
		dies[i] = append(dies[i], v)
	}
	var now, peak int64
	for i := range p.Ops {
		now = saturatingAdd(now, 2*int64(p.Ops[i].Out.Bytes())) // twice: an operator may copy an operand to read it
		peak = max(peak, now)
		for _, v := range dies[i] {
			if k := p.Ops[v].Kind; k != Input && k != Constant {
				now -= 2 * int64(p.Ops[v].Out.Bytes())
			}
		}
	}
	return peak
}

func saturatingAdd(x, y int64) int64 {
	if x > math.MaxInt64-y {
		return math.MaxInt64
	}
	return x + y
}

// checkMemory demands that both Run and Trace stay within the limit.
func (p *Program) checkMemory(l Limits) error {
	// The sum of all values bounds every sum that planning takes, so that none overflows.
	var all int64
	for i := range p.Ops {
		all = saturatingAdd(all, int64(p.Ops[i].Out.Bytes()))
	}
	if all > math.MaxInt64/8 {
		return fmt.Errorf("%w: its values have %d bytes in sum", ErrLimit, all)
	}
	if n := max(p.tracePeak(), lower(p, 0).peakBytes(1)); n > l.MaxMemory {
		return fmt.Errorf("%w: needs %d bytes of memory, at most %d are allowed", ErrLimit, n, l.MaxMemory)
	}
	return nil
}
