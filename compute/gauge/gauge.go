// Package gauge is the program by which the rate of a machine is measured: a chain of matrix products that cannot be
// started before its seed is known, or shortened, and whose result has the same bits on every machine.
//
// Package protocol/registry decides the class of a machine from the result.
package gauge

import (
	"encoding/binary"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/philox"
)

// Side of the square matrices that are multiplied.
const Side = 256

// Segment runs a segment of the program of a seed and returns the digest of the result. Each step multiplies the state
// [Side, Side] by a fixed matrix and keeps of every element what is beyond the nearest integer: that stays within a
// half, and a change in the last bit of one element is a change of all after two steps.
func Segment(seed canon.Digest, segment, steps uint32, threads int) canon.Digest {
	x, w, y := make([]float32, Side*Side), make([]float32, Side*Side), make([]float32, Side*Side)
	start(seed, segment, x, w)
	for range steps {
		(&matmul.Gemm{M: Side, N: Side, K: Side, A: x, ARow: Side, ACol: 1, B: w, BRow: Side, BCol: 1, C: y,
			CRow: Side}).Run(threads)
		for i, v := range y {
			x[i] = v - kernel.Round(v)
		}
	}
	return result(x)
}

// start fills the state and the fixed matrix of a segment.
func start(seed canon.Digest, segment uint32, x, w []float32) {
	var at [4]byte
	binary.BigEndian.PutUint32(at[:], segment)
	d := canon.Sum("starling/gauge/1", seed[:], at[:])
	philox.NormalTo(x, binary.BigEndian.Uint64(d[:]), 0)
	philox.NormalTo(w, binary.BigEndian.Uint64(d[:]), 1)
}

// result is the digest of the last state of a segment.
func result(x []float32) canon.Digest {
	out := make([]byte, 0, 4*len(x))
	for _, v := range x {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return canon.Sum("starling/gauge/result/1", out)
}
