//go:build !unix

package memory

import "os"

// Peak is the most memory that this process has had resident, in bytes; 0 where that is not known.
func Peak() uint64 { return 0 }

// PeakOf is the Peak of a process that has ended.
func PeakOf(*os.ProcessState) uint64 { return 0 }
