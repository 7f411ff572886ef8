package blob

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Pool are stores of one process whose equal blobs are one file with a name in each of their folders. A blob enters a
// store as it does without a Pool: its bytes are here, and they match the CID. They are then compared with the file of
// another store, and where all are equal the store gets a name of that file in place of a copy. The file system counts
// the names, so a blob that one store deletes stays in the others. Files of a Pool are read-only, and nothing writes to
// them: a damaged blob is repaired in another file. Blobs of one leaf are small, and each store has its own.
//
// A store has the blobs that were put into it, and no others. Where files cannot have several names each store has its
// own file. A nil Pool shares nothing.
type Pool struct {
	mu     sync.Mutex // held while a blob appears
	stores []*Disk
}

// Join lets a store share the files of those that have joined, before anything is put into it.
func (p *Pool) Join(s *Disk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stores = append(p.stores, s)
	s.pool = p
}

// only makes the blob m appear at a path of store s: as the file of another store with the bytes of data, or by make.
func (p *Pool) only(s *Disk, at string, data io.ReadSeeker, m *Manifest, make func() error) error {
	if p == nil || IsLeaf(m.Root) {
		return make()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.stores {
		file := filepath.Join(other.dir, filepath.Base(at))
		if other != s && same(file, data, m.Size) && s.link(file, at) == nil {
			return nil
		}
	}
	return make()
}

// same reports whether a file has the bytes of data.
func same(file string, data io.ReadSeeker, size int64) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err1 := f.Stat()
	_, err2 := data.Seek(0, io.SeekStart)
	return err1 == nil && err2 == nil && info.Mode().IsRegular() && info.Size() == size && equal(f, data)
}

// link gives a file another name in the folder of the store, in the place of a damaged file that has it.
func (s *Disk) link(file, name string) error {
	temp := name + tempSuffix
	if err := os.Link(file, temp); err != nil {
		return err
	}
	defer os.Remove(temp) // it stays where both names were of one file
	return s.publish(temp, name)
}

// equal reports whether two readers give the same bytes.
func equal(a, b io.Reader) bool {
	x, y := make([]byte, LeafBytes), make([]byte, LeafBytes)
	for {
		n, errA := io.ReadFull(a, x)
		k, errB := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:k]) {
			return false
		}
		if errA != nil || errB != nil {
			ended := []error{io.EOF, io.ErrUnexpectedEOF}
			return slices.Contains(ended, errA) && slices.Contains(ended, errB)
		}
	}
}
