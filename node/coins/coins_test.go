package coins

import "testing"

// Amounts have the symbol of their coin after the number; a text without one is in ZEN.
func TestSplit(t *testing.T) {
	for text, want := range map[string][2]string{"25": {"25", ""}, "25 ZEN": {"25", ""}, "0.5usdc": {"0.5", "usdc"},
		"1 USDC": {"1", "usdc"}} {
		if number, symbol, ok := Split(text); !ok || number != want[0] || symbol != want[1] {
			t.Errorf("%q: %q %q %v", text, number, symbol, ok)
		}
	}
	for _, text := range []string{"", "usdc", "-1usdc", "1e6", "0x10", "1usdc2", "ibc/27"} {
		if number, symbol, ok := Split(text); ok && symbol != "e" {
			t.Errorf("%q is read as %q %q", text, number, symbol)
		}
	}
}
