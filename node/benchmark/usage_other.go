//go:build !unix

package benchmark

import "time"

// usage returns zeros: this system does not say.
func usage() (cpu time.Duration, peakMiB int) { return 0, 0 }
