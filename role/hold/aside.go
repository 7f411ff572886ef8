package hold

import (
	"io"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/audit"
)

// Aside keeps bytes that are seldom read outside of memory.
type Aside interface {
	// Keep keeps the parts, one after the other, as long as what it returns can be reached; nil: they are too small, or
	// it has no room, and they stay in memory.
	Keep(parts [][]byte) io.ReaderAt
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

// Get returns the tensors, and whether nobody else has them, as after they were put aside.
func (a *Tensors) Get() (tensors []*tensor.Tensor, own bool, err error) {
	if a.at == nil {
		return a.memory, false, nil
	}
	all, from := make([]*tensor.Tensor, len(a.shapes)), int64(0)
	for i, s := range a.shapes {
		all[i] = tensor.New(s)
		if _, err := a.at.ReadAt(all[i].Bytes(), from); err != nil {
			return nil, false, err
		}
		from += int64(s.Bytes())
	}
	return all, true, nil
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
	whole := referee.NewSealed(steps, tensors)
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
