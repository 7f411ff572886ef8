//go:build !linux

package memory

// dropProgram takes pages of this program's file out of the resident memory, where a system has a way to.
func dropProgram() {}

// resident is not known here.
func resident() uint64 { return 0 }
