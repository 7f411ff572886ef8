package canon

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

// paths are the lanes that this processor has.
func paths() (all []lanes) {
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW) {
		all = append(all, sixteen)
	}
	if cpuid.CPU.Supports(cpuid.AVX2) {
		all = append(all, eight)
	}
	return all
}

// Leaves digested side by side have the digests of Leaf, at every length around the ends of blocks.
func TestLanes(t *testing.T) {
	all := paths()
	if len(all) == 0 {
		t.Skip("no vector path on this processor")
	}
	random, h := rand.NewChaCha8([32]byte{1}), new(hasher)
	for _, l := range all {
		for size := 0; size <= 4100; size++ {
			if size > 260 && size < 4090 {
				continue
			}
			data := make([][]byte, l.width)
			for i := range data {
				data[i] = make([]byte, size)
				_, _ = random.Read(data[i])
			}
			out := make([]Digest, l.width)
			l.leaves(h, out, data)
			for i := range out {
				if out[i] != Leaf(data[i]) {
					t.Fatalf("%d lanes, %d bytes, leaf %d: %v, wanted %v", l.width, size, i, out[i], Leaf(data[i]))
				}
			}
		}
	}
}

func BenchmarkLeaves(b *testing.B) {
	data := make([][]byte, 64)
	for i := range data {
		data[i] = make([]byte, 4096)
	}
	for _, l := range append(paths(), lanes{width: 1}) {
		b.Run(strconv.Itoa(l.width), func(b *testing.B) {
			defer func(before lanes) { fastest = before }(fastest)
			fastest = l
			b.SetBytes(64 * 4096)
			for b.Loop() {
				Leaves(data)
			}
		})
	}
}
