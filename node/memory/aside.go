package memory

import (
	"io"
	"os"
)

// Aside is a folder in which bytes lie that are seldom read, each in a file without a name that goes with the process.
// It implements hold.Aside. Where files cannot be unlinked while they are open, they stay until the folder is
// removed.
type Aside string

// leastAside is the size from which on bytes lie in a file. What is smaller stays in memory.
const leastAside = 64 << 20

// Keep implements hold.Aside.
func (dir Aside) Keep(parts [][]byte) io.ReaderAt {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size < leastAside {
		return nil
	}
	f, err := os.CreateTemp(string(dir), "aside-*")
	if err != nil {
		return nil
	}
	_ = os.Remove(f.Name())
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			_ = f.Close()
			return nil
		}
	}
	return f // it is closed, and its bytes are gone, when nobody can reach it
}
