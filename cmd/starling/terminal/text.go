package terminal

import (
	"math"
	"strings"
)

// levels are the heights of a sketch.
var levels = []rune("▁▂▃▄▅▆▇█")

// Sketch draws a series in width letters, between its least value and its largest. NaN and infinite values are left
// out.
func Sketch(values []float64, width int) string {
	least, largest := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if known(v) {
			least, largest = min(least, v), max(largest, v)
		}
	}
	var b strings.Builder
	for i := range min(width, len(values)) {
		v := values[i*len(values)/min(width, len(values))]
		switch {
		case !known(v):
			b.WriteByte(' ')
		case largest == least:
			b.WriteRune(levels[0])
		default:
			b.WriteRune(levels[int((v-least)/(largest-least)*float64(len(levels)-1)+0.5)])
		}
	}
	return b.String()
}
