package hold

import (
	"io"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
)

// Aside keeps bytes that are seldom read outside of memory.
type Aside interface {
	// Keep keeps the parts, one after the other, as long as what it returns can be reached; nil: they are too small, or
	// it has no room, and they stay in memory.
	Keep(parts [][]byte) io.ReaderAt
	// Room returns a function that copies a tensor to a place that the collector does not see, and returns it there: it
	// is not to change any more. The place has room for bytes in all, and a tensor beyond that is returned as it is. The
	// function may be called concurrently. nil: the bytes are too few, or too many, and the tensors stay in memory.
	Room(bytes int64) func(*tensor.Tensor) *tensor.Tensor
	// Scratch returns memory for bytes in all that is written to, and that the system may take back meanwhile; nil: the
	// bytes are too few, or it has no room.
	Scratch(bytes int64) Scratch
}

// Scratch is memory whose pages are those of a file.
type Scratch interface {
	// New returns a tensor of zeros, in the memory of the collector if none is left here.
	New(s tensor.Shape) *tensor.Tensor
	// Rest says that nothing of it is used for a while.
	Rest()
}

// RoomFor is Room of a place that may be nil.
func RoomFor(to Aside, bytes int64) func(*tensor.Tensor) *tensor.Tensor {
	if to == nil {
		return nil
	}
	return to.Room(bytes)
}

// Lay copies the tensors of a checkpoint that has no others yet to a place outside of memory, if there is room.
func Lay(to Aside, c *train.Checkpoint) *train.Checkpoint {
	all, size := c.Tensors(), int64(0)
	for _, t := range all {
		if t.Lent() {
			return c
		}
		size += int64(t.Shape.Bytes())
	}
	lay := RoomFor(to, size)
	if lay == nil {
		return c
	}
	laid := &train.Checkpoint{Round: c.Round, Names: c.Names, Outer: make([][]*tensor.Tensor, len(c.Outer))}
	for _, t := range c.Params {
		laid.Params = append(laid.Params, lay(t))
	}
	for k, list := range c.Outer {
		for _, t := range list {
			laid.Outer[k] = append(laid.Outer[k], lay(t))
		}
	}
	return laid
}

// Tensors are in memory, or were put aside.
type Tensors struct {
	memory []*tensor.Tensor
	shapes []tensor.Shape
	at     io.ReaderAt // nil: they are in memory
}

// Put puts tensors aside that are not to change any more; nil: they stay in memory.
func Put(to Aside, tensors []*tensor.Tensor) *Tensors {
	a := &Tensors{memory: tensors}
	var parts [][]byte
	for _, t := range tensors {
		parts = append(parts, t.Bytes())
		a.shapes = append(a.shapes, t.Shape)
	}
	if to == nil {
		return a
	}
	if a.at = to.Keep(parts); a.at != nil {
		a.memory = nil
	}
	return a
}

// Get returns the tensors, and whether the caller alone has them, as after they were put aside.
func (a *Tensors) Get() (tensors []*tensor.Tensor, own bool, err error) {
	return a.part(0, len(a.shapes))
}

// First returns the first n of the tensors.
func (a *Tensors) First(n int) ([]*tensor.Tensor, error) {
	tensors, _, err := a.part(0, n)
	return tensors, err
}

// Without is Get, with nil in place of the first n.
func (a *Tensors) Without(n int) (tensors []*tensor.Tensor, own bool, err error) {
	rest, own, err := a.part(n, len(a.shapes))
	return slices.Concat(make([]*tensor.Tensor, n), rest), own, err
}

func (a *Tensors) part(lo, hi int) (tensors []*tensor.Tensor, own bool, err error) {
	if a.at == nil {
		return a.memory[lo:hi:hi], false, nil
	}
	from := int64(0)
	for i, s := range a.shapes[:hi] {
		if i >= lo {
			t := tensor.New(s)
			if _, err := a.at.ReadAt(t.Bytes(), from); err != nil {
				return nil, false, err
			}
			tensors = append(tensors, t)
		}
		from += int64(s.Bytes())
	}
	return tensors, true, nil
}

// Added is the number of tensors at the begin of a carried state that a unit adds to its update, and does not compute
// with: the residual, a tensor for each of params parameters, or none.
func Added(s *train.Spec, params int) int {
	if x := s.Exchange; s.Rollout == nil && x.CarriesResidual() && !x.Replicas() {
		return params
	}
	return 0
}

// Blob is bytes in memory, or put aside.
type Blob struct {
	memory []byte
	size   int
	at     io.ReaderAt // nil: they are in memory
}

// PutBlob puts bytes aside that are not to change any more; nil: they stay in memory.
func PutBlob(to Aside, data []byte) Blob {
	if to != nil {
		if at := to.Keep([][]byte{data}); at != nil {
			return Blob{size: len(data), at: at}
		}
	}
	return Blob{memory: data}
}

// Get returns the bytes. They are not to be changed.
func (b Blob) Get() ([]byte, error) {
	if b.at == nil {
		return b.memory, nil
	}
	data := make([]byte, b.size)
	_, err := b.at.ReadAt(data, 0)
	return data, err
}

// Sealed is an inner state that is sealed, with its trees over tiles.
type Sealed interface {
	audit.Source
	Trees() []*canon.Tree
}

// Seal makes the state after some inner steps ready for the opening of a seal. All that stays in memory are the trees
// of its tensors, if these are put aside.
func Seal(to Aside, steps uint32, tensors []*tensor.Tensor) (s Sealed, aside bool) {
	whole := sealed.New(steps, tensors)
	kept := Put(to, tensors)
	if kept.at == nil {
		return whole, false
	}
	return &distant{whole.Roots(), whole.Trees(), steps, kept}, true
}

// distant is one whose tensors were put aside. It implements audit.Source.
type distant struct {
	roots []canon.Digest
	trees []*canon.Tree
	step  uint32
	of    *Tensors
}

func (d *distant) Roots() []canon.Digest { return d.roots }
func (d *distant) Shape(i int) []byte    { return canon.MustMarshal(d.of.shapes[i]) }
func (d *distant) Step() uint32          { return d.step }
func (d *distant) Trees() []*canon.Tree  { return d.trees }

// Tile returns what of a tile can be read: what is damaged is not what its tree says, and the seal does not open.
func (d *distant) Tile(i, j int) []byte {
	var before int64
	for _, s := range d.of.shapes[:i] {
		before += int64(s.Bytes())
	}
	from := j * tensor.LeafBytes
	n := min(tensor.LeafBytes, d.of.shapes[i].Bytes()-from)
	tile := tensor.Alloc(n)
	_, _ = d.of.at.ReadAt(tile, before+int64(from))
	return tensor.Wrap(tensor.Make(d.of.shapes[i].DType, n/d.of.shapes[i].DType.Size()), tile).Leaf(0)
}
