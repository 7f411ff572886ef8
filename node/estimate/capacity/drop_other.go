//go:build !linux

package capacity

import "os"

// dropCached does nothing: this system cannot be asked, and a file may be read from memory.
func dropCached(*os.File) {}
