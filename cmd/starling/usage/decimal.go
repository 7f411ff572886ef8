package usage

import (
	"fmt"
	"strconv"
	"strings"
)

const millionth = 1_000_000

// Decimal is a flag that is not negative and has at most six decimals, in millionths. "5%" is 0.05.
type Decimal struct {
	Millionths uint64
	Kind       string // as --help names it
}

// String implements pflag.Value.
func (d *Decimal) String() string {
	s := fmt.Sprintf("%d.%06d", d.Millionths/millionth, d.Millionths%millionth)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Type implements pflag.Value.
func (d *Decimal) Type() string { return d.Kind }

// Set implements pflag.Value.
func (d *Decimal) Set(text string) error {
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
	d.Millionths = n
	return nil
}
