package device

import _ "embed"

//go:embed numbers.cl
var numbers string

//go:embed steps.cl
var steps string

//go:embed rows.cl
var rows string

//go:embed attention.cl
var attention string

// Options are those with which kernels are compiled. Never among them: -cl-mad-enable, -cl-denorms-are-zero,
// -cl-no-signed-zeros, -cl-finite-math-only, -cl-fast-relaxed-math and -cl-unsafe-math-optimizations.
const Options = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"

// Source is all text that kernels are made of, but for the elementwise groups, which are printed.
func Source() string { return Options + before + numbers + steps + rows + attention }

// before is what every source begins with: products are not contracted with sums.
const before = `#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
`
