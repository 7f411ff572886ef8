package memory

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"github.com/starling-network/starling/compute/tensor"
)

// LeastRoom is the size from which on tensors lie in a file that is mapped.
const LeastRoom = 32 << 20

// Room implements hold.Aside.
func (a Aside) Room(bytes int64) func(*tensor.Tensor) *tensor.Tensor {
	if bytes < LeastRoom || int64(int(bytes)) != bytes {
		return nil
	}
	free, err := a.reserve(bytes)
	if err != nil {
		return nil
	}
	r, err := a.room(int(bytes))
	if err != nil {
		free()
		return nil
	}
	runtime.AddCleanup(r.pages, func(free func()) { free() }, free)
	return r.lay
}

// room is a file without a name in which tensors are laid, one after the other.
type room struct {
	file  *os.File // goes with the room, which its pages outlive
	pages *pages

	mu   sync.Mutex
	used int
}

// pages are those of a mapped file. They go back to the system when no tensor lies in them any more. They implement
// tensor.Owner.
type pages struct{ data []byte }

// room makes an empty room.
func (a Aside) room(bytes int) (*room, error) {
	f, err := a.unnamed()
	if err != nil {
		return nil, err
	}
	const slack = 1 << 16 // tensors begin at multiples of tensor.Align
	size := bytes + slack
	if err = f.Truncate(int64(size)); err == nil {
		var data []byte
		if data, err = mapFile(f, size); err == nil {
			p := &pages{data}
			runtime.AddCleanup(p, func(data []byte) { _ = unmap(data) }, data)
			return &room{file: f, pages: p}, nil
		}
	}
	err = errors.Join(err, f.Close())
	_ = os.Remove(f.Name()) // where an open file has its name still
	return nil, err
}

// lay writes a tensor to the file, and returns it as its pages; if that cannot be done, the tensor.
func (r *room) lay(t *tensor.Tensor) *tensor.Tensor {
	n := len(t.Bytes())
	r.mu.Lock()
	from := r.used
	if from+n > len(r.pages.data) {
		r.mu.Unlock()
		return t
	}
	r.used = tensor.AlignUp(from + n)
	r.mu.Unlock()
	if _, err := r.file.WriteAt(t.Bytes(), int64(from)); err != nil {
		return t
	}
	runtime.KeepAlive(t)
	return tensor.Lend(t.Shape, r.pages.data[from:from+n:from+n], r.pages)
}

// Rest implements tensor.Owner.
func (p *pages) Rest(part []byte) { restIn(p.data, part) }
