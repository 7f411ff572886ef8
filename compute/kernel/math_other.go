//go:build !amd64

package kernel

func expVector(dst, src *float32, n int)      { panic("kernel: no vector loops on this port") }
func logisticVector(dst, src *float32, n int) { panic("kernel: no vector loops on this port") }
func tanhVector(dst, src *float32, n int)     { panic("kernel: no vector loops on this port") }
