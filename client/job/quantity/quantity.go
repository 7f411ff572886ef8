// Package quantity holds the values of a job file that have units: sizes, bandwidths, durations and amounts of money,
// and numbers that may be left open. Each parses its own text exactly, without floating point. The package knows no
// keys.
package quantity

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Size counts bytes. Its text is a number with a unit: 512MB, 16GB (powers of 1000), 16GiB (powers of 1024).
type Size uint64

var sizeUnits = map[string]uint64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// Parse implements strict.Text.
func (v *Size) Parse(s string) error {
	n, err := scaled(s, sizeUnits)
	if err != nil {
		return errors.New("a size is a number with a unit, such as 512MB, 16GB or 16GiB")
	}
	*v = Size(n)
	return nil
}

// Wanted implements strict.Text.
func (v *Size) Wanted() string { return "a size such as 16GB" }

// String is the size in its largest exact unit.
func (v Size) String() string { return largestUnit(uint64(v), sizeUnits, "B") }

// Bandwidth counts bits a second. Its text is a number with a unit: 800Kbps, 10Mbps, 1Gbps.
type Bandwidth uint64

var bandwidthUnits = map[string]uint64{"bps": 1, "Kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}

// Parse implements strict.Text.
func (v *Bandwidth) Parse(s string) error {
	n, err := scaled(s, bandwidthUnits)
	if err != nil {
		return errors.New("a bandwidth is a number with a unit, such as 10Mbps or 1Gbps")
	}
	*v = Bandwidth(n)
	return nil
}

// Wanted implements strict.Text.
func (v *Bandwidth) Wanted() string { return "a bandwidth such as 10Mbps" }

// String is the bandwidth in its largest exact unit.
func (v Bandwidth) String() string { return largestUnit(uint64(v), bandwidthUnits, "bps") }

// maxScaled keeps every size and bandwidth within what an int64 of any API can carry.
const maxScaled = 1 << 62

// scaled reads a decimal number followed by one of the units, exactly.
func scaled(s string, units map[string]uint64) (uint64, error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, ok := units[s[len(digits):]]
	if !ok {
		return 0, errors.New("unknown unit")
	}
	n, err := decimal(strings.TrimSpace(digits))
	if err != nil {
		return 0, err
	}
	n.Mul(n, new(big.Rat).SetUint64(unit))
	if !n.IsInt() || n.Num().Cmp(big.NewInt(maxScaled)) > 0 {
		return 0, errors.New("not a whole number of the smallest unit, or too large")
	}
	return n.Num().Uint64(), nil
}

func largestUnit(n uint64, units map[string]uint64, smallest string) string {
	best := smallest
	for name, size := range units {
		if n != 0 && n%size == 0 && size > units[best] {
			best = name
		}
	}
	return strconv.FormatUint(n/units[best], 10) + best
}

// decimal reads digits with at most one point, no sign and no exponent, exactly.
func decimal(s string) (*big.Rat, error) {
	if len(s) > 40 || s == "" || s == "." || strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 {
		return nil, errors.New("not a decimal number")
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, errors.New("not a decimal number")
	}
	return r, nil
}

// Duration is a span of time. Its text is 90s, 10m, 1h30m, 24h or 7d.
type Duration time.Duration

// Parse implements strict.Text.
func (v *Duration) Parse(s string) error {
	days, rest := 0, s
	if before, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return errDuration
		}
		days, rest = int(n), after
	}
	var d time.Duration
	if rest != "" || days == 0 {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || d < 0 || d > 100*365*24*time.Hour {
			return errDuration
		}
	}
	*v = Duration(time.Duration(days)*24*time.Hour + d)
	return nil
}

// Wanted implements strict.Text.
func (v *Duration) Wanted() string { return "a duration such as 10m" }

var errDuration = errors.New("a duration is a number with a unit, such as 90s, 10m, 1h30m, 24h or 7d")

// Seconds implements strict.Timed.
func (v *Duration) Seconds() float64 { return time.Duration(*v).Seconds() }

// String is the Go form, 10m0s.
func (v Duration) String() string { return time.Duration(v).String() }

// Amount is money, in uzen: 1 ZEN = 1 000 000 uzen. Its text is a decimal number of ZEN with at most six decimals.
type Amount uint64

// MaxAmount is the largest amount of a job file: a million million ZEN.
const MaxAmount Amount = 1e18

// ParseAmount reads an amount of ZEN.
func ParseAmount(s string) (v Amount, err error) { return v, v.Parse(s) }

// Parse implements strict.Text.
func (v *Amount) Parse(s string) error {
	n, err := decimal(s)
	if err != nil {
		return errors.New("an amount is a decimal number of ZEN, such as 25 or 0.40")
	}
	n.Mul(n, big.NewRat(1_000_000, 1))
	if !n.IsInt() {
		return errors.New("an amount has at most six decimals: 0.000001 ZEN is the smallest coin")
	}
	if n.Num().Cmp(new(big.Int).SetUint64(uint64(MaxAmount))) > 0 {
		return fmt.Errorf("an amount is at most %s ZEN", MaxAmount)
	}
	*v = Amount(n.Num().Uint64())
	return nil
}

// Wanted implements strict.Text.
func (v *Amount) Wanted() string { return "an amount of ZEN such as 25 or 0.40" }

// String is the amount in ZEN without trailing zeros.
func (v Amount) String() string {
	s := fmt.Sprintf("%d.%06d", v/1_000_000, v%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Auto is a number that may be left to the software: 0 stands for auto.
type Auto int

// Parse implements strict.Text.
func (v *Auto) Parse(s string) error {
	if s == "auto" {
		*v = 0
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1<<20 {
		return errors.New("it is auto, or a whole number from 1 to 1048576")
	}
	*v = Auto(n)
	return nil
}

// Wanted implements strict.Text.
func (v *Auto) Wanted() string { return "auto or a whole number" }

// AtLeast is a least number, written 4+ or 4.
type AtLeast int

// Parse implements strict.Text.
func (v *AtLeast) Parse(s string) error {
	n, err := strconv.ParseUint(strings.TrimSuffix(s, "+"), 10, 16)
	if err != nil {
		return errors.New("it is a least number, such as 4+")
	}
	*v = AtLeast(n)
	return nil
}

// Wanted implements strict.Text.
func (v *AtLeast) Wanted() string { return "a least number such as 4+" }
