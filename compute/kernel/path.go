package kernel

import (
	"fmt"
	"sync/atomic"
)

// Version numbers the bits that this package computes. A program names the version it was written for.
const Version = 1

// Path is a set of kernels for a family of processors. All paths give the same bits.
type Path uint8

const (
	// Portable is Go alone: the reference, and what a referee runs.
	Portable Path = iota + 1
	// AVX2 is amd64 assembly for processors with AVX2 and FMA3.
	AVX2
)

// String returns the name that Select takes.
func (p Path) String() string {
	switch p {
	case Portable:
		return "portable"
	case AVX2:
		return "avx2"
	}
	return fmt.Sprintf("Path(%d)", uint8(p))
}

var active atomic.Uint32

func init() { active.Store(uint32(Best())) }

// Best returns the fastest path that this processor can run.
func Best() Path {
	if hasAVX2 {
		return AVX2
	}
	return Portable
}

// Active returns the path in use.
func Active() Path { return Path(active.Load()) }

// Select makes the named path ("portable", "avx2"; "" is the best one) the one in use. It changes speed, never results.
func Select(name string) error {
	p := Best()
	switch name {
	case "":
	case "portable":
		p = Portable
	case "avx2":
		if !hasAVX2 {
			return fmt.Errorf("kernel: path %q needs an amd64 processor with AVX2 and FMA3: use %q or %q", name, "portable", "")
		}
		p = AVX2
	default:
		return fmt.Errorf("kernel: no path named %q: use %q, %q or %q", name, "portable", "avx2", "")
	}
	active.Store(uint32(p))
	return nil
}
