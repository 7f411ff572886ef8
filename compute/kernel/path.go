package kernel

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Path is a set of kernels for a family of processors. All paths give the same bits.
type Path uint8

const (
	// Portable is Go alone: the reference, and what a referee runs.
	Portable Path = iota + 1
	// AVX2 is amd64 assembly for processors with AVX2 and FMA3.
	AVX2
	// AVX512 is amd64 assembly for processors and systems with AVX-512 F, BW, DQ and VL (Skylake-X, Zen 4 and later).
	// Products of integers also use VNNI where there is one.
	AVX512
	// NEON is arm64 assembly for products of integers, which every processor of that port runs; the rest is Go.
	NEON
)

// last is the path with the highest number.
const last = NEON

var pathNames = [...]string{Portable: "portable", AVX2: "avx2", AVX512: "avx512", NEON: "neon"}

// Floats reports whether the path has assembly for float32.
func (p Path) Floats() bool { return p == AVX2 || p == AVX512 }

// String returns the name that Select takes.
func (p Path) String() string {
	if p < Portable || p > last {
		return fmt.Sprintf("Path(%d)", uint8(p))
	}
	return pathNames[p]
}

// needs says what the processor must have to run a path of assembly.
var needs = [...]string{AVX2: "an amd64 processor with AVX2 and FMA3",
	AVX512: "an amd64 processor with AVX-512 F, BW, DQ and VL, enabled by the operating system",
	NEON:   "an arm64 processor"}

var active atomic.Uint32

func init() { active.Store(uint32(Best())) }

// Paths returns the paths that this processor can run, the slowest first.
func Paths() []Path {
	paths := []Path{Portable}
	for p := AVX2; p <= last; p++ {
		if p.runs() {
			paths = append(paths, p)
		}
	}
	return paths
}

// Best returns the fastest path that this processor can run.
func Best() Path {
	paths := Paths()
	return paths[len(paths)-1]
}

// Active returns the path in use.
func Active() Path { return Path(active.Load()) }

// Select makes the named path ("portable", "avx2", "avx512", "neon"; "" is the best one) the one in use. It changes
// speed, never results.
func Select(name string) error {
	p := Best()
	if name != "" {
		if p = named(name); p == 0 {
			return fmt.Errorf("kernel: no path named %q: use %s or %q", name, quoted(all()...), "")
		}
		if !p.runs() {
			return fmt.Errorf("kernel: path %q needs %s: use %s or %q", name, needs[p], quoted(Paths()...), "")
		}
	}
	active.Store(uint32(p))
	return nil
}

// named returns the path of that name, 0 if there is none.
func named(name string) Path {
	for _, p := range all() {
		if p.String() == name {
			return p
		}
	}
	return 0
}

// all lists the paths of all ports.
func all() (paths []Path) {
	for p := Portable; p <= last; p++ {
		paths = append(paths, p)
	}
	return paths
}

// quoted lists the names of paths.
func quoted(paths ...Path) string {
	var names []string
	for _, p := range paths {
		names = append(names, fmt.Sprintf("%q", p))
	}
	return strings.Join(names, ", ")
}
