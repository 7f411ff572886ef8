// Package kernel holds the arithmetic of Starling: the loops that compute the operators of a program on plain slices,
// with results specified to the last bit.
//
// It is not a tensor library: no shapes, no allocation of results, no dispatch by operator (see tensor and program).
// Functions of one number are those of package detmath and its single, on slices in elementary; matrix products are in
// matmul, attention in attention.
//
// # Numerics
//
// Every kernel gives the same bits on every port, path and number of threads. The rules that make it so:
//
//   - A float32 operation rounds once, to nearest even. Subnormals are kept; nothing is flushed to zero.
//   - A product that feeds a sum is written float32(x*y) + z or float64(x*y) + z, which forbids the compiler to
//     contract it, or it is an explicit fused multiply-add (matmul.FMA32). Package math is used only for its exact
//     functions (Sqrt, FMA on float64, bits).
//   - A matrix product accumulates over k in ascending order by fused multiply-adds, in chunks of matmul.ChunkK that
//     each start from +0; the chunk sums are then added to the first one in ascending order, each addition rounded. The
//     product over an empty k is +0. Work is split over output rows and columns, never over k.
//   - Every other sum is one tree fixed by the number of its elements alone.
//   - In version 1 of the numerics a transcendental function of float32 is a formula over float64, specified by its
//     source in package detmath, whose result is rounded once to float32. In version 2 it is a formula over float32 and
//     32-bit integers, specified by its source in package single, in which nothing is fused.
//   - Random numbers are a function of (seed, stream, index): package philox.
//   - Whether a result is NaN is specified, its sign and payload are not: processors disagree on them. Code that
//     hashes values makes every NaN 0x7fc00000 first, and no operator may look into a NaN.
//
// A change to any result is another version of the numerics, and so of the protocol: a program names the version whose
// bits it asks for, and this build computes all of them.
//
// # Paths
//
// A path is a set of kernels for a family of processors. Portable is Go alone, runs everywhere and is what a referee
// runs; the others are assembly written by the program in gen, and equal Portable bit for bit, which the tests check.
package kernel

//go:generate go run ./gen
//go:generate go run ./exact/gen
