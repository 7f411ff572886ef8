package memory

import (
	"cmp"
	"io"
	"os"
	"runtime"
)

// Aside is a folder in which bytes lie that are seldom read, each in a file without a name that goes with the process.
// It implements hold.Aside. Where files cannot be unlinked while they are open, they stay until the folder is
// removed.
type Aside struct {
	Dir string
	// Reserve asks for room on the disk, which free gives back; nil: there is enough.
	Reserve func(bytes int64) (free func(), err error)
	// Least is the size from which on Keep puts bytes into a file, and not into memory; 0: LeastAside.
	Least int
}

// LeastAside is the size from which on Keep puts bytes into a file.
const LeastAside = 64 << 20

// Keep implements hold.Aside.
func (a Aside) Keep(parts [][]byte) io.ReaderAt {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size < cmp.Or(a.Least, LeastAside) {
		return nil
	}
	free, err := a.reserve(int64(size))
	if err != nil {
		return nil
	}
	f, err := a.write(parts)
	if err != nil {
		free()
		return nil
	}
	k := &kept{f} // it is closed, and its bytes are gone, when nothing can reach it
	runtime.AddCleanup(k, func(free func()) { free() }, free)
	return k
}

// kept is a file of an Aside. It implements io.ReaderAt.
type kept struct{ *os.File }

func (a Aside) reserve(bytes int64) (free func(), err error) {
	if a.Reserve == nil {
		return func() {}, nil
	}
	return a.Reserve(bytes)
}

// unnamed makes a file that goes when it is closed and not mapped any more.
func (a Aside) unnamed() (*os.File, error) {
	f, err := os.CreateTemp(a.Dir, "aside-*")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

func (a Aside) write(parts [][]byte) (*os.File, error) {
	f, err := a.unnamed()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}
