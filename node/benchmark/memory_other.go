//go:build !unix

package benchmark

// peakMiB is 0: this system does not say.
func peakMiB() int { return 0 }
