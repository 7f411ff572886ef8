package valued

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/coin"
)

var usdc = coin.Coin{Denom: "ibc/A", Symbol: "usdc", Exponent: 6}

func day(n int) time.Time { return time.Date(2026, 11, n, 13, 0, 0, 0, time.UTC) }

// An amount has the rate of its day, or the last one of the week before, exactly; the sums are those of the lines.
func TestValues(t *testing.T) {
	r, err := Read(strings.NewReader(`day,coin,rate
2026-11-09,zen,0.3333333
2026-11-02,ZEN,0.25
,usdc,0.92
`), "EUR")
	if err != nil {
		t.Fatal(err)
	}
	list := []inspect.Booking{{Time: day(2), Uzen: 2_000_000}, {Time: day(8), Uzen: -1}, {Time: day(10), Uzen: 3_000_001},
		{Uzen: 1_500_000, Coin: usdc}}
	sum, err := r.Value(list)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0.500000", "-0.000000", "1.000000", "1.380000"} {
		if list[i].Value != want || list[i].Unit != "EUR" {
			t.Errorf("amount %d: %s %s, wanted %s", i, list[i].Value, list[i].Unit, want)
		}
	}
	if sum != (Sum{"EUR", "2.880000", "0.000000"}) {
		t.Errorf("%+v", sum)
	}
	for name, b := range map[string]inspect.Booking{"before the first day": {Time: day(1)},
		"after a week": {Time: day(16)}, "without a block": {},
		"another coin": {Time: day(3), Coin: coin.Coin{Denom: "ibc/B", Symbol: "dai", Exponent: 18}},
	} {
		if _, err := r.Value([]inspect.Booking{b}); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err = Read(strings.NewReader("day,coin,rate\n"), "USDC"); err != nil {
		t.Fatal(err)
	}
	if sum, err := r.Value(list[3:]); err != nil || sum.Received != "1.500000" {
		t.Errorf("the unit itself: %+v, %v", sum, err)
	}
}

// Text that is no file of rates is refused, whatever it is.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "day,coin,rate\n2026-11-09,zen,0.5\n", "day,coin,rate\n,zen,1\n,zen,2\n",
		"day,coin\n", "day,coin,rate\n2026-13-09,zen,0.5\n", "day,coin,rate\n,zen,1e9999999\n", "day,coin,rate\n,zen,-1\n",
		"day,coin,rate\n,zen,0\n", "day,coin,rate\n,,1\n", "day,coin,rate\n,zen,1/3\n", "rate,coin,day\n,zen,1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(strings.NewReader(text), "EUR")
		if err != nil {
			if !errors.Is(err, ErrRates) {
				t.Fatal(err)
			}
			return
		}
		for name, list := range r.coins {
			for i, one := range list {
				if name == "" || one.price.Sign() <= 0 || i > 0 && !one.day.After(list[i-1].day) {
					t.Fatalf("%q: %v", name, list)
				}
			}
		}
	})
}
