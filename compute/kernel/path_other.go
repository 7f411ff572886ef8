//go:build !amd64

package kernel

func (p Path) runs() bool { return p == Portable }
