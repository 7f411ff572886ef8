package network

import (
	"fmt"
	"strconv"
	"strings"
)

const millionth = 1_000_000

// decimal is a flag that is not negative and has at most six decimals, in millionths. "5%" is 0.05.
type decimal struct {
	millionths uint64
	kind       string
}

// String implements pflag.Value.
func (d *decimal) String() string {
	s := fmt.Sprintf("%d.%06d", d.millionths/millionth, d.millionths%millionth)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Type implements pflag.Value.
func (d *decimal) Type() string { return d.kind }

// Set implements pflag.Value.
func (d *decimal) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	places := 6
	if percent {
		places = 4
	}
	whole, part, _ := strings.Cut(number, ".")
	part = strings.TrimRight(part, "0")
	if len(part) > places {
		return fmt.Errorf("more than %d decimals", places)
	}
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", places-len(part)), 10, 64)
	if err != nil || whole+part == "" {
		return fmt.Errorf("%q is not a number such as 1.5 or 5%%", text)
	}
	d.millionths = n
	return nil
}

// zen is an amount in uzen as a number of ZEN.
func zen(uzen uint64) float64 { return float64(uzen) / millionth }
