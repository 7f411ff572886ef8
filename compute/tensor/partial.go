package tensor

// Partial is a tensor of which only some leaves of its Tree are known.
type Partial struct {
	Shape  Shape
	leaves map[int][]byte
	whole  []byte // nil if not all is known
}

// NewPartial returns a tensor of which nothing is known yet.
func NewPartial(s Shape) *Partial { return &Partial{Shape: s, leaves: map[int][]byte{}} }

// Whole returns a tensor of which everything is known. It keeps the memory of t.
func Whole(t *Tensor) *Partial { return &Partial{Shape: t.Shape, whole: t.mem} }

// Leaves is the number of leaves of the Tree of a tensor of this shape.
func (s Shape) Leaves() int { return (s.Bytes() + LeafBytes - 1) / LeafBytes }

// LeafRange returns which elements of a tensor of this shape leaf i has.
func (s Shape) LeafRange(i int) (from, to int) {
	each := LeafBytes / s.DType.Size()
	return i * each, min((i+1)*each, s.Elements())
}

// Set makes leaf i known. It must have the bytes of LeafRange, which are kept, not copied.
func (p *Partial) Set(i int, leaf []byte) { p.leaves[i] = leaf }

// Read copies the elements from an index on to dst, and reports whether all of them are known.
func (p *Partial) Read(dst []byte, from int) bool {
	if at := from * p.Shape.DType.Size(); p.whole != nil {
		return copy(dst, p.whole[min(at, len(p.whole)):]) == len(dst)
	}
	for at := from * p.Shape.DType.Size(); len(dst) > 0; {
		leaf, skip := p.leaves[at/LeafBytes], at%LeafBytes
		if skip >= len(leaf) {
			return false
		}
		n := copy(dst, leaf[skip:])
		dst, at = dst[n:], at+n
	}
	return true
}
