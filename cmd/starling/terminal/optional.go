package terminal

import (
	"fmt"
	"time"

	"github.com/starling-network/starling/protocol/coin"
)

// WhenUnix is a time in seconds since 1970, for people.
func WhenUnix(seconds int64) string { return time.Unix(seconds, 0).Local().Format(time.DateTime) }

// When is a time for people, or nothing.
func When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// Figure is a figure that may be missing.
func Figure(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.4f", *x)
}

// Part is the done part of the planned, if planned is known.
func Part(done, planned int) string {
	if planned == 0 {
		return fmt.Sprint(done)
	}
	return fmt.Sprintf("%d/%d", done, planned)
}

// Whole is a number that is not known where it is 0.
func Whole[T int | int64 | uint64](n T) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Positive is a number as text says it, or nothing where it is not above 0.
func Positive(x float64, text func(float64) string) string {
	if x <= 0 {
		return ""
	}
	return text(x)
}

// Seconds is a time in seconds, for people.
func Seconds(x float64) string { return Span(time.Duration(x * float64(time.Second))) }

// Optional is an amount with the name of its coin, or nothing where it is 0.
func Optional(c coin.Coin, grains uint64) string {
	if grains == 0 {
		return ""
	}
	return c.Text(grains)
}

// Gigaflops are those of a machine that may not be measured.
func Gigaflops(rate uint64) string {
	return Positive(float64(rate)/1e9, func(x float64) string { return fmt.Sprintf("%.1f", x) })
}
