// Package terminal is how the binary talks: the progress line, plain log lines, errors, exit codes, and the forms of
// amounts, durations and numbers that people read.
//
// It formats and writes; it decides nothing, knows no job and no network, and reads no clock: time is an argument.
package terminal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/protocol/coin"
)

// Zen formats uzen as ZEN, exactly, with two to six decimals: 1.27, 0.000001.
func Zen(uzen uint64) string {
	return coin.Coin{}.Amount(uzen)
}

// Amount writes an amount of ZEN as a number, and one of another coin with its name, for tables.
func Amount(c coin.Coin, grains uint64) string {
	if c.Own() {
		return Zen(grains)
	}
	return c.Text(grains)
}

// Short writes an amount of a coin rounded down to two decimals, for lines that are redrawn.
func Short(c coin.Coin, grains uint64) string {
	s := c.Amount(grains)
	if point := strings.IndexByte(s, '.'); point >= 0 {
		s = s[:min(len(s), point+3)]
	}
	return s
}

// Number writes x with three digits: 812, 18.4k, 2.31M.
func Number(x float64) string { return scaled(x, "", "k", "M", "G", "T") }

// Bytes writes a number of bytes with three digits and a decimal unit: 39.9 MB.
func Bytes(n uint64) string { return scaled(float64(n), " B", " kB", " MB", " GB", " TB", " PB") }

func scaled(x float64, units ...string) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	i, size := 0, math.Abs(x)
	for ; size >= 999.5 && i < len(units)-1; i++ {
		size /= 1000
	}
	digits := 0
	switch {
	case i > 0 && size < 9.995, i == 0 && size < 9.995 && size != math.Trunc(size):
		digits = 2
	case i > 0 && size < 99.95, i == 0 && size != math.Trunc(size) && size < 99.95:
		digits = 1
	}
	return strconv.FormatFloat(math.Copysign(size, x), 'f', digits, 64) + units[i]
}

// Loss writes a loss with three decimals.
func Loss(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// LossUnit writes the unit of a loss after it: nats, and nothing where a reward is measured, of which the loss is what
// is left.
func LossUnit(measured map[string]float64) string {
	for _, name := range []string{"reward", "mse"} {
		if _, other := measured[name]; other {
			return ""
		}
	}
	return " nats"
}

// Rate writes a learning rate with two digits: 2.9e-4.
func Rate(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', 1, 64), "e")
	e, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%se%d", mantissa, e)
}

// Clock writes a duration as hours, minutes and seconds: 01:52:10; days come first when there are any: 3d 01:52:10.
func Clock(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		return fmt.Sprintf("%dd %s", days, text)
	}
	return text
}

// Span writes a duration for a sentence: 8ms, 0.4s, 12s, 2m 11s, 1h 52m, 3d 4h.
func Span(d time.Duration) string {
	d = max(d, 0)
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case d > 0 && d < 95*time.Millisecond:
		return fmt.Sprintf("%dms", max(1, d.Round(time.Millisecond).Milliseconds()))
	case d < 9950*time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}
