//go:build !unix

package benchmark

import "time"

// Usage returns zeros: this system does not say.
func Usage() (cpu time.Duration, peakMiB int) { return 0, 0 }
