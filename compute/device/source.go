package device

import (
	_ "embed"

	"github.com/starling-network/starling/compute/kernel"
)

//go:embed numbers.cl
var numbers string

//go:embed double.cl
var double string

//go:embed single.cl
var single string

//go:embed steps.cl
var steps string

//go:embed rows.cl
var rows string

//go:embed exact.cl
var exact string

//go:embed shapes.cl
var shapes string

//go:embed attention.cl
var attention string

// Options are those with which kernels are compiled. Never among them: -cl-mad-enable, -cl-denorms-are-zero,
// -cl-no-signed-zeros, -cl-finite-math-only, -cl-fast-relaxed-math and -cl-unsafe-math-optimizations.
const Options = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"

// Source is all text that kernels of a version of the numerics are made of, but for the elementwise groups, which are
// printed.
func Source(numerics uint32) string { return Options + beginning(numerics) + attention }

// common is the kernels of both versions of the numerics.
var common = steps + rows + exact + shapes

// beginning is the text that every program of a version of the numerics begins with.
func beginning(numerics uint32) string {
	if numerics == kernel.Version1 {
		return uncontracted + "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + numbers + double + common
	}
	return uncontracted + numbers + single + common
}

// Products are not contracted with sums.
const uncontracted = "#pragma OPENCL FP_CONTRACT OFF\n"
