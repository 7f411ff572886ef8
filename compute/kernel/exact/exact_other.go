//go:build !amd64

package exact

// There is no assembly for this port: kernel.Best is kernel.Portable, and nothing gets here.
func runExact(*arguments) { panic("exact: no tile kernel on this port") }
