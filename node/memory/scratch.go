package memory

import (
	"os"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/role/hold"
)

// Scratch implements hold.Aside. The disk has all of its bytes from now on: a page that it has no room for would end
// the process.
func (a Aside) Scratch(bytes int64) hold.Scratch {
	r := a.area(bytes, zeroed)
	if r == nil {
		return nil
	}
	_ = r.file.Close() // the pages keep the file
	return scratch{r}
}

// scratch is an area whose pages are written to.
type scratch struct{ *area }

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
func (s scratch) New(shape tensor.Shape) *tensor.Tensor {
	if n := shape.Bytes(); n > 0 {
		if from, ok := s.next(n); ok {
			return s.tensor(shape, from)
		}
	}
	return tensor.New(shape)
}

// Rest implements hold.Scratch.
func (s scratch) Rest() { rest(s.pages.data) }
