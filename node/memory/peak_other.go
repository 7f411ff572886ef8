//go:build !unix

package memory

// Peak is the most memory that this process has had resident, in bytes; 0 where that is not known.
func Peak() uint64 { return 0 }
