package client

import "testing"

// What a validator says of its price is a stranger's: one that asks for nothing, or for what is no price, is no fee.
func TestFeeOf(t *testing.T) {
	for words, want := range map[string]string{"0.01uzen": "21uzen", "1uzen": "2001uzen", "": "", "much": ""} {
		f, err := feeOf(words, 1000)
		if (err == nil) != (want != "") || f.Amount.String() != want {
			t.Errorf("%q: %s (%v), want %q", words, f.Amount, err, want)
		}
	}
}
