package usage

import (
	"testing"
)

// A percentage is the fraction that it stands for.
func TestDecimal(t *testing.T) {
	for text, want := range map[string]string{"1": "1", "0.05": "0.05", "5%": "0.05", "0.0001%": "0.000001",
		"12.500000": "12.5", ".5": "0.5", "7.": "7", "0": "0"} {
		var d Decimal
		if err := d.Set(text); err != nil || d.String() != want {
			t.Errorf("%s: %s, want %s (%v)", text, d.String(), want, err)
		}
	}
}
