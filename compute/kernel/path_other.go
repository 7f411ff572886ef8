//go:build !amd64 && !arm64

package kernel

func (p Path) runs() bool { return p == Portable }
