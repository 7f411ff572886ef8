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
)

var pathNames = [...]string{Portable: "portable", AVX2: "avx2", AVX512: "avx512"}

// String returns the name that Select takes.
func (p Path) String() string {
	if p < Portable || p > AVX512 {
		return fmt.Sprintf("Path(%d)", uint8(p))
	}
	return pathNames[p]
}

// needs says what the processor must have to run a path of assembly.
var needs = [...]string{AVX2: "AVX2 and FMA3", AVX512: "AVX-512 F, BW, DQ and VL, enabled by the operating system"}

var active atomic.Uint32

func init() { active.Store(uint32(Best())) }

// Paths returns the paths that this processor can run, the slowest first.
func Paths() []Path {
	paths := []Path{Portable}
	for _, p := range []Path{AVX2, AVX512} {
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

// Select makes the named path ("portable", "avx2", "avx512"; "" is the best one) the one in use. It changes speed,
// never results.
func Select(name string) error {
	p := Best()
	if name != "" {
		if p = named(name); p == 0 {
			return fmt.Errorf("kernel: no path named %q: use %s or %q", name, quoted(AVX512), "")
		}
		if !p.runs() {
			return fmt.Errorf("kernel: path %q needs an amd64 processor with %s: use %s or %q", name, needs[p], quoted(Best()),
				"")
		}
	}
	active.Store(uint32(p))
	return nil
}

// named returns the path of that name, 0 if there is none.
func named(name string) Path {
	for p := Portable; p <= AVX512; p++ {
		if p.String() == name {
			return p
		}
	}
	return 0
}

// quoted lists the names of the paths up to last.
func quoted(last Path) string {
	var names []string
	for p := Portable; p <= last; p++ {
		names = append(names, fmt.Sprintf("%q", p))
	}
	return strings.Join(names, ", ")
}
