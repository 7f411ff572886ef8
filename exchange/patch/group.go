package patch

import (
	"encoding/binary"
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

// A group is a run of elements of one tensor: each tensor is cut into groups of groupElements, the last of which may
// have fewer. The content of a piece is
//
//	u64 number of the first element, of all tensors
//	u32 groups
//	u32 differences of dense groups | u32 those of them of wide groups
//	u32 classes
//	groups times: u8 mode
//	classes times: u8 class | u32 changed elements | u32 those of wide groups | u32 bytes of gaps
//	the gaps of each class
//	four planes: byte 0 of every difference, then byte 1, and of wide groups bytes 2 and 3; in each plane the differences
//	of dense groups, then those of each class
//
// A difference is that of the bits of an element in the later version to those in the earlier, as a signed integer
// folded to an unsigned one (0, -1, 1, -2, ...). Narrow groups have the same lower 16 bits in both versions, such as
// weights in bfloat16, and the difference of the upper 16. A gap is the number of elements of sparse groups between a
// changed one and the one before it, both of one class: the class of an element is its exponent in the earlier version,
// as a step of one size changes small weights more often than large ones. Integers are little-endian.
const (
	groupElements = 1 << 16
	pieceHead     = 8 + 4*4
	classHead     = 1 + 3*4
	pieceTarget   = MaxPieceBytes / 2 // of the content, to which one group of at most as much is added
	classes       = 256
	infinity      = 0x7f800000
)

// Modes of a group. Numbers are the format.
const (
	same = iota
	narrowSparse
	narrowDense
	wideSparse
	wideDense
	modes
)

// sparse reports whether a group lists its changed elements, and width is how many bytes its differences have.
func sparse(mode byte) bool { return mode == narrowSparse || mode == wideSparse }

func width(mode byte) int {
	switch mode {
	case same:
		return 0
	case narrowSparse, narrowDense:
		return 2
	}
	return 4
}

// bitsOf is an element as a number; every NaN is the same.
func bitsOf(x float32) uint32 {
	u := math.Float32bits(x)
	if u&^(1<<31) > infinity {
		return tensor.CanonicalNaN
	}
	return u
}

func classOf(u uint32) byte { return byte(u >> 23) }

func fold(d int32) uint32   { return uint32(d<<1) ^ uint32(d>>31) }
func unfold(u uint32) int32 { return int32(u>>1) ^ -int32(u&1) }

// planes are the bytes of differences: all first ones, all second ones, and so on.
type planes [4][]byte

func (p *planes) size() int { return len(p[0]) + len(p[1]) + len(p[2]) + len(p[3]) }

// classWriter has the changed elements of one class in sparse groups.
type classWriter struct {
	gaps gapWriter
	of   planes
}

// writer collects groups to pieces.
type writer struct {
	flush func(raw []byte) error

	first    uint64 // element of the piece
	elements int    // of the piece
	head     []byte
	classes  [classes]classWriter
	dense    planes
}

// tensor adds the groups of a tensor.
func (w *writer) tensor(a, b []float32) error {
	for at := 0; at < len(a); at += groupElements {
		end := min(at+groupElements, len(a))
		w.group(a[at:end], b[at:end])
		if w.size() >= pieceTarget {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) size() int {
	n := pieceHead + len(w.head) + w.dense.size()
	for i := range w.classes {
		if c := &w.classes[i]; c.gaps.changed > 0 {
			n += classHead + len(c.gaps.bits.b) + 8 + c.of.size()
		}
	}
	return n
}

func (w *writer) group(a, b []float32) {
	changed, narrow := 0, true
	for i := range a {
		x, y := bitsOf(a[i]), bitsOf(b[i])
		if x != y {
			changed++
			narrow = narrow && (x^y)&0xffff == 0
		}
	}
	mode := byte(wideSparse)
	if narrow {
		mode = narrowSparse
	}
	switch n := width(mode); {
	case changed == 0:
		mode = same
	case changed*(n+1) > len(a)*n:
		mode++ // dense
	}
	w.elements += len(a)
	w.head = append(w.head, mode)
	if mode == same {
		return
	}
	for i := range a {
		x, y := bitsOf(a[i]), bitsOf(b[i])
		to := &w.dense
		if sparse(mode) {
			c := &w.classes[classOf(x)]
			if x == y {
				c.gaps.gap++
				continue
			}
			c.gaps.change()
			to = &c.of
		}
		d := fold(int32(y - x))
		if width(mode) == 2 {
			d = fold(int32(int16(y>>16-x>>16))) & 0xffff
		}
		for k := range width(mode) {
			to[k] = append(to[k], byte(d>>(8*k)))
		}
	}
}

// end gives the piece that was begun to flush, if there is one.
func (w *writer) end() error {
	if len(w.head) == 0 {
		return nil
	}
	var heads, gaps []byte
	of, n := w.dense, 0
	for class := range w.classes {
		c := &w.classes[class]
		if c.gaps.changed == 0 {
			continue
		}
		b := c.gaps.bits.end()
		heads = append(heads, byte(class))
		for _, n := range []int{int(c.gaps.changed), len(c.of[2]), len(b)} {
			heads = binary.LittleEndian.AppendUint32(heads, uint32(n))
		}
		gaps = append(gaps, b...)
		for k := range of {
			of[k] = append(of[k], c.of[k]...)
		}
		n++
	}
	raw := binary.LittleEndian.AppendUint64(make([]byte, 0, w.size()), w.first)
	for _, n := range []int{len(w.head), len(w.dense[0]), len(w.dense[2]), n} {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(n))
	}
	raw = append(append(append(raw, w.head...), heads...), gaps...)
	for _, plane := range of {
		raw = append(raw, plane...)
	}
	*w = writer{flush: w.flush, first: w.first + uint64(w.elements)}
	return w.flush(raw)
}
