package patch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// reader reads groups from pieces.
type reader struct {
	next   func(i int) ([]byte, error)
	pieces int

	piece   int    // that comes next
	at      uint64 // elements that were read
	head    []byte // modes of the groups of the piece that are left
	classes [classes]classReader
	dense   planes
}

// classReader has the changed elements of one class in sparse groups.
type classReader struct {
	gaps gapReader
	of   planes
}

func (r *reader) wrong(what string) error {
	return fmt.Errorf("patch: piece %d of %d: %w: %s", r.piece-1, r.pieces, ErrPiece, what)
}

// tensor makes a tensor of the version after from one of the version before.
func (r *reader) tensor(a, b []float32) error {
	for at := 0; at < len(a); at += groupElements {
		end := min(at+groupElements, len(a))
		if len(r.head) == 0 {
			if err := r.begin(); err != nil {
				return err
			}
		}
		mode := r.head[0]
		r.head = r.head[1:]
		if err := r.group(mode, a[at:end], b[at:end]); err != nil {
			return err
		}
		r.at += uint64(end - at)
		if len(r.head) == 0 {
			if err := r.empty(); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin reads the next piece.
func (r *reader) begin() error {
	if r.piece == r.pieces {
		return fmt.Errorf("patch: %w: the pieces end before the weights", ErrPiece)
	}
	raw, err := r.next(r.piece)
	r.piece++
	if err != nil {
		return err
	}
	if len(raw) < pieceHead {
		return r.wrong("it is too short")
	}
	if first := binary.LittleEndian.Uint64(raw); first != r.at {
		return r.wrong(fmt.Sprintf("it begins with element %d, and not %d", first, r.at))
	}
	groups, all, wide, n := word(raw, 8), word(raw, 12), word(raw, 16), word(raw, 20)
	raw = raw[pieceHead:]
	if groups == 0 || n > classes || groups+n*classHead > len(raw) {
		return r.wrong("the heads of its groups are not whole")
	}
	r.head, raw = raw[:groups], raw[groups:]
	for _, mode := range r.head {
		if mode >= modes {
			return r.wrong(fmt.Sprintf("it has a group of mode %d", mode))
		}
	}
	return r.parts(raw, all, wide, n)
}

// parts reads the gaps of a number of classes, and all differences.
func (r *reader) parts(raw []byte, all, wide, n int) error {
	heads, rest := raw[:n*classHead], raw[n*classHead:]
	r.classes = [classes]classReader{}
	sizes := [][2]int{{all, wide}}
	list := []*planes{&r.dense}
	for last := -1; len(heads) > 0; heads = heads[classHead:] {
		class, all, wide, size := int(heads[0]), word(heads, 1), word(heads, 5), word(heads, 9)
		c := &r.classes[class]
		if class <= last || all == 0 || size > len(rest) {
			return r.wrong("its gaps are not whole, or in another order")
		}
		c.gaps.left, c.gaps.b, rest = uint32(all), rest[:size], rest[size:]
		c.gaps.next()
		sizes, list, last = append(sizes, [2]int{all, wide}), append(list, &c.of), class
	}
	for k := range r.dense {
		for i, p := range list {
			n := sizes[i][k/2]
			if n > len(rest) {
				return r.wrong("its differences are not whole")
			}
			p[k], rest = rest[:n], rest[n:]
		}
	}
	if len(rest) > 0 {
		return r.wrong("its parts have other sizes")
	}
	return nil
}

// word is a u32 of at most the size of a piece, or one more.
func word(raw []byte, at int) int {
	return int(min(binary.LittleEndian.Uint32(raw[at:]), MaxPieceBytes+1))
}

// group makes the elements of a group.
func (r *reader) group(mode byte, a, b []float32) error {
	n := width(mode)
	for i, x := range a {
		u := bitsOf(x)
		if mode == same {
			b[i] = math.Float32frombits(u)
			continue
		}
		of := &r.dense
		if sparse(mode) {
			c := &r.classes[classOf(u)]
			g := &c.gaps
			of = &c.of
			if g.left == 0 || g.gap > 0 {
				g.gap--
				b[i] = math.Float32frombits(u)
				continue
			}
			g.left--
			g.next()
		}
		if len(of[n-1]) == 0 || len(of[0]) == 0 {
			return r.wrong("it has too few differences")
		}
		d := uint32(0)
		for k := range n {
			d |= uint32(of[k][0]) << (8 * k)
			of[k] = of[k][1:]
		}
		if n == 2 {
			u += uint32(unfold(d)) << 16
		} else {
			u += uint32(unfold(d))
		}
		b[i] = math.Float32frombits(bitsOf(math.Float32frombits(u)))
	}
	return nil
}

// empty reports an error if a piece has more or less than its groups take.
func (r *reader) empty() error {
	left := r.dense.size()
	for i := range r.classes {
		g := &r.classes[i].gaps
		if left += r.classes[i].of.size(); g.left > 0 || g.cut || (g.at+7)/8 != uint(len(g.b)) {
			return r.wrong("its gaps end elsewhere")
		}
	}
	if left > 0 {
		return r.wrong("it has more than its groups take")
	}
	return nil
}

// end reports an error if pieces are left.
func (r *reader) end() error {
	if r.piece != r.pieces || len(r.head) > 0 {
		return fmt.Errorf("patch: %w: pieces are left at the end of the weights", ErrPiece)
	}
	return nil
}
