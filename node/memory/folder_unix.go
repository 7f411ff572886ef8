//go:build unix

package memory

import (
	"os"

	"golang.org/x/sys/unix"
)

// Maps says that files can be mapped.
const Maps = true

// mapFile returns the first size bytes of a file as its pages.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

// mapScratch is mapFile of pages that are written to.
func mapScratch(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmap(data []byte) error { return unix.Munmap(data) }

// rest lets the system take back pages, of which the first is whole.
func rest(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }
