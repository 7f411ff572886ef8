// Package single has the elementary functions of version 2 of the numerics (kernel.Version2). Every operation is one of
// float32 that is rounded on its own, or of 32-bit integers: nothing is fused, nothing is float64. So processors and
// devices without float64 compute the same bits, and vectors hold twice as many numbers as in package detmath, whose
// functions are those of version 1.
//
// A function is its source here, to the last bit. Its comment states the largest error in units in the last place (ulp)
// over all float32, which TestArguments measures. NaN is one bit pattern, 0x7fc00000.
package single
