package memory

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/role/hold"
)

// Scratch implements hold.Aside.
func (a Aside) Scratch(bytes int64) hold.Scratch {
	if bytes < LeastRoom || int64(int(bytes)) != bytes {
		return nil
	}
	free, err := a.reserve(bytes)
	if err != nil {
		return nil
	}
	s, err := a.scratch(int(bytes))
	if err != nil {
		free()
		return nil
	}
	runtime.AddCleanup(s.pages, func(free func()) { free() }, free)
	return s
}

// scratch is a file without a name whose pages are written to.
type scratch struct {
	pages *pages

	mu   sync.Mutex
	used int
}

// scratch makes an empty scratch. The disk has all of its bytes from now on: a page that it has no room for would end
// the process.
func (a Aside) scratch(bytes int) (*scratch, error) {
	f, err := a.unnamed()
	if err != nil {
		return nil, err
	}
	data, err := zeroed(f, bytes)
	if err = errors.Join(err, f.Close()); err != nil { // the pages keep the file
		return nil, errors.Join(err, removed(f.Name()))
	}
	p := &pages{data}
	runtime.AddCleanup(p, func(data []byte) { _ = unmap(data) }, data)
	return &scratch{pages: p}, nil
}

// zeroed maps a file, once it has as many zeros as it is to have bytes.
func zeroed(f *os.File, bytes int) ([]byte, error) {
	zeros := make([]byte, 1<<20)
	for from := 0; from < bytes; from += len(zeros) {
		if _, err := f.WriteAt(zeros[:min(len(zeros), bytes-from)], int64(from)); err != nil {
			return nil, err
		}
	}
	return mapScratch(f, bytes)
}

// New implements hold.Scratch.
func (s *scratch) New(shape tensor.Shape) *tensor.Tensor {
	n := shape.Bytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.used
	if n == 0 || from+n > len(s.pages.data) {
		return tensor.New(shape)
	}
	s.used = tensor.AlignUp(from + n)
	return tensor.Lend(shape, s.pages.data[from:from+n:from+n], s.pages)
}

// Rest implements hold.Scratch.
func (s *scratch) Rest() { rest(s.pages.data) }
