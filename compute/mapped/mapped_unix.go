//go:build unix

package mapped

import "syscall"

// take returns n zeros from the system; nil if it has none.
func take(n int) []byte {
	raw, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return raw
}

// give gives back what take returned.
func give(raw []byte) { _ = syscall.Munmap(raw) }
