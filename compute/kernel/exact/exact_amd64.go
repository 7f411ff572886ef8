package exact

// runExact adds blocks of integer products to 4 rows of C. It needs AVX2 and FMA3.
//
//go:noescape
func runExact(x *arguments)
