package kernel

// The vector loops of math_amd64.s compute Exp, Logistic and Tanh of n elements, n a positive multiple of 8. They need
// AVX2.

//go:noescape
func expVector(dst, src *float32, n int)

//go:noescape
func logisticVector(dst, src *float32, n int)

//go:noescape
func tanhVector(dst, src *float32, n int)
