package memory

import (
	"os"
	"runtime"
	"sync"

	"github.com/starling-network/starling/compute/tensor"
)

// LeastRoom is the size from which on tensors lie in a file that is mapped.
const LeastRoom = 32 << 20

// Room implements hold.Aside.
func (a Aside) Room(bytes int64) func(*tensor.Tensor) *tensor.Tensor {
	r := a.area(bytes, func(f *os.File, size int) ([]byte, error) {
		if err := f.Truncate(int64(size)); err != nil {
			return nil, err
		}
		return mapFile(f, size)
	})
	if r == nil {
		return nil
	}
	return r.lay
}

// area is a file without a name in which tensors lie, one after the other.
type area struct {
	file  *os.File // closed when the collector takes the area; the pages stay mapped as long as tensors use them
	pages *pages

	mu   sync.Mutex
	used int
}

// pages are those of a mapped file. They go back to the system when no tensor lies in them any more. They implement
// tensor.Owner.
type pages struct{ data []byte }

// slack is what an area has in addition to its bytes, since its tensors begin at multiples of tensor.Align.
const slack = 1 << 16

// area makes an empty area for bytes, whose file is mapped by a function; nil: they are too few, or there is no room.
func (a Aside) area(bytes int64, mapped func(f *os.File, size int) ([]byte, error)) *area {
	if bytes < LeastRoom || int64(int(bytes)) != bytes {
		return nil
	}
	free, err := a.reserve(bytes)
	if err != nil {
		return nil
	}
	f, err := a.unnamed()
	if err != nil {
		free()
		return nil
	}
	data, err := mapped(f, int(bytes)+slack)
	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name()) // where an open file has its name still
		free()
		return nil
	}
	p := &pages{data}
	runtime.AddCleanup(p, func(data []byte) { _ = unmap(data) }, data)
	runtime.AddCleanup(p, func(free func()) { free() }, free)
	return &area{file: f, pages: p}
}

// next is where the next n bytes lie; false: there is no room for them.
func (r *area) next(n int) (from int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from = r.used; from+n > len(r.pages.data) {
		return 0, false
	}
	r.used = tensor.AlignUp(from + n)
	return from, true
}

// tensor is the pages from a place on, as a tensor.
func (r *area) tensor(s tensor.Shape, from int) *tensor.Tensor {
	n := s.Bytes()
	return tensor.Lend(s, r.pages.data[from:from+n:from+n], r.pages)
}

// lay writes a tensor to the file, and returns it as its pages; if that cannot be done, the tensor.
func (r *area) lay(t *tensor.Tensor) *tensor.Tensor {
	from, ok := r.next(len(t.Bytes()))
	if !ok {
		return t
	}
	if _, err := r.file.WriteAt(t.Bytes(), int64(from)); err != nil {
		return t
	}
	runtime.KeepAlive(t)
	return r.tensor(t.Shape, from)
}

// Rest implements tensor.Owner.
func (p *pages) Rest(part []byte) { restIn(p.data, part) }
