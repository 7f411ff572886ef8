//go:build !amd64

package kernel

func expVector(dst, src *float32, n int, path Path)      { panic(noVector) }
func logisticVector(dst, src *float32, n int, path Path) { panic(noVector) }
func tanhVector(dst, src *float32, n int, path Path)     { panic(noVector) }
func logVector(dst, src *float32, n int, path Path)      { panic(noVector) }
func rsqrtVector(dst, src *float32, n int, path Path)    { panic(noVector) }
