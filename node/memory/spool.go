package memory

import (
	"errors"
	"os"
	"sync"
)

// Spool takes bytes whose number is not known before. A few stay in memory; more lie in a file without a name, which is
// gone when the Spool is closed or the process ends. Once all are written, Bytes returns them, in memory or as pages of
// the file that the system may take back. It implements io.ReaderAt and io.WriterAt. One goroutine uses it until Bytes
// was called.
type Spool struct {
	dir    string
	small  []byte
	file   *os.File
	mapped []byte
	mu     sync.Mutex
}

// spoolMemory is how many bytes stay in memory.
const spoolMemory = 64 << 20

// NewSpool returns a Spool whose file lies in dir, which is made if it is needed.
func NewSpool(dir string) *Spool { return &Spool{dir: dir} }

// Dir is the folder of its file.
func (s *Spool) Dir() string { return s.dir }

// WriteAt implements io.WriterAt. at is not beyond what was written.
func (s *Spool) WriteAt(p []byte, at int64) (int, error) {
	if s.file == nil && at+int64(len(p)) > spoolMemory {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	if s.file != nil {
		return s.file.WriteAt(p, at)
	}
	s.small = append(s.small[:at], p...)
	return len(p), nil
}

// spill makes the file.
func (s *Spool) spill() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := Aside{Dir: s.dir}.unnamed()
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(s.small, 0); err != nil {
		return errors.Join(err, f.Close(), removed(f.Name()))
	}
	s.file, s.small = f, nil
	return nil
}

// removed removes a file that may be gone already.
func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (s *Spool) ReadAt(p []byte, at int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, at)
	}
	return copy(p, s.small[at:]), nil
}

// Bytes are the first size bytes. They are valid until Close, and nothing is written after.
func (s *Spool) Bytes(size int) ([]byte, error) {
	if s.file == nil {
		return s.small[:size:size], nil
	}
	data, err := mapFile(s.file, size)
	if errors.Is(err, errors.ErrUnsupported) {
		data = make([]byte, size)
		_, err = s.file.ReadAt(data, 0)
		return data, err
	}
	s.mapped = data
	return data, err
}

// Rest lets the system take back the pages of a part of the bytes, which come again when they are read.
func (s *Spool) Rest(part []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	restIn(s.mapped, part)
}

// Close gives the bytes back. It may be called again; a nil Spool has none.
func (s *Spool) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.mapped != nil {
		err = unmap(s.mapped)
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close(), removed(s.file.Name())) // where an open file has its name still
	}
	s.small, s.mapped, s.file = nil, nil, nil
	return err
}
