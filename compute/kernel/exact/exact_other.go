//go:build !amd64 && !arm64

package exact

const multiplies = false

// There is no assembly for this port: kernel.Best is kernel.Portable, and nothing gets here.
func runExact(*arguments)        { panic("exact: no tile kernel on this port") }
func runNarrow512(*arguments512) { panic("exact: no tile kernel on this port") }
func runWide512(*arguments512)   { panic("exact: no tile kernel on this port") }
func quantise512(*lines)         { panic("exact: no tile kernel on this port") }
