// Package detmath has the elementary functions whose results package math leaves to the port, with results specified to
// the last bit: a function is its source here, every operation rounded, no contraction.
//
// The functions of float32 are those of version 1 of the numerics; version 2 has those of package single. They are off
// by less than 0.51 units in the last place, so that results are nearly always the correctly rounded ones, but what is
// promised is the formula. NaN is one bit pattern, 0x7fc00000. The package works on single numbers; package kernel
// applies it to slices, in vectors. A changed result is another version of the numerics.
package detmath
