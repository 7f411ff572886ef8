package quantity

import "testing"

func TestAmount(t *testing.T) {
	for s, want := range map[string]Amount{"25": 25_000_000, "0.40": 400_000, "0.000001": 1, "0.1": 100_000,
		"1000000000000": MaxAmount,
		"0":             0, "007.5": 7_500_000, ".5": 500_000, "0.1000000000": 100_000} {
		var a Amount
		if err := a.Parse(s); err != nil || a != want {
			t.Errorf("%q is %d, %v, want %d", s, a, err, want)
		}
	}
	for _, s := range []string{"", ".", "-1", "1e3", "0.0000001", "1000000000000.000001", "25 ZEN", "0x10", "1/2",
		"1.2.3", "NaN", "+1"} {
		if a := Amount(0); a.Parse(s) == nil {
			t.Errorf("%q accepted as %d", s, a)
		}
	}
	for a, want := range map[Amount]string{25_000_000: "25", 400_000: "0.4", 1: "0.000001", 0: "0", 1_270_000: "1.27"} {
		if a.String() != want {
			t.Errorf("%d prints as %s, want %s", uint64(a), a, want)
		}
	}
}

func TestSizeAndBandwidth(t *testing.T) {
	for s, want := range map[string]Size{"16GB": 16e9, "16GiB": 16 << 30, "1.5KB": 1500, "10 MB": 10e6, "7B": 7} {
		var v Size
		if err := v.Parse(s); err != nil || v != want {
			t.Errorf("%q is %d, %v, want %d", s, v, err, want)
		}
	}
	for _, s := range []string{"16", "GB", "16gb", "1.5B", "-1GB", "99999999TB", ""} {
		if v := Size(0); v.Parse(s) == nil {
			t.Errorf("%q accepted as %d", s, v)
		}
	}
	var b Bandwidth
	if err := b.Parse("10Mbps"); err != nil || b != 10e6 || b.String() != "10Mbps" || Size(16<<30).String() != "16GiB" {
		t.Errorf("10Mbps is %d, %v", b, err)
	}
}

func TestDuration(t *testing.T) {
	for s, want := range map[string]string{"10m": "10m0s", "1h30m": "1h30m0s", "7d": "168h0m0s", "1d12h": "36h0m0s",
		"90s": "1m30s"} {
		var v Duration
		if err := v.Parse(s); err != nil || v.String() != want {
			t.Errorf("%q is %s, %v, want %s", s, v, err, want)
		}
	}
	for _, s := range []string{"", "10", "-5m", "d", "10 minutes", "99999999d", "3000000h"} {
		if v := Duration(0); v.Parse(s) == nil {
			t.Errorf("%q accepted as %s", s, v)
		}
	}
}
