package coin

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
)

var usdc, dai = Coin{"ibc/A", "usdc", 6}, Coin{"ibc/B", "dai", 18}

// Amounts are written with the decimals of their coin, and read back exactly.
func TestAmounts(t *testing.T) {
	yen := Coin{"ibc/C", "yen", 0}
	for _, c := range []struct {
		coin   Coin
		grains uint64
		text   string
	}{
		{Coin{}, 1, "0.000001 ZEN"}, {Coin{}, 1_270_000, "1.27 ZEN"}, {Coin{}, 0, "0.00 ZEN"},
		{usdc, 25_000_000, "25.00 USDC"},
		{dai, 1, "0.000000001 DAI"}, {dai, math.MaxUint64, "18446744073.709551615 DAI"}, {yen, 7, "7 YEN"},
		{Coin{"x", "cent", 2}, 105, "1.05 CENT"}, {Coin{"x", "dime", 1}, 15, "1.5 DIME"},
	} {
		if got := c.coin.Text(c.grains); got != c.text {
			t.Errorf("%d grains of %s: %q, want %q", c.grains, c.coin.Name(), got, c.text)
		}
		if back, err := c.coin.Parse(c.coin.Amount(c.grains)); err != nil || back != c.grains {
			t.Errorf("%s is read as %d: %v", c.text, back, err)
		}
	}
	for _, text := range []string{"", ".", "-1", "1e6", "1.2.3", "0.0000001", "18446744073710", "+1", " 1", "0x1",
		strings.Repeat("1", 41)} {
		if n, err := usdc.Parse(text); !errors.Is(err, ErrAmount) {
			t.Errorf("%q is %d: %v", text, n, err)
		}
	}
}

// A text is divided into a number and a symbol; that of the network's own coin counts as none.
func TestSplit(t *testing.T) {
	for text, want := range map[string][2]string{"25": {"25", ""}, "2.5ZEN": {"2.5", ""}, "0.5USDC": {"0.5", "usdc"},
		"5 dai": {"5", "dai"}, "1.": {"1.", ""}, "25 ZEN": {"25", ""}} {
		if number, symbol, ok := Split(text); !ok || number != want[0] || symbol != want[1] {
			t.Errorf("%q is %q of %q, %v", text, number, symbol, ok)
		}
	}
	for _, text := range []string{"", "usdc", "-5usdc", "5,0", "5usdc1", "0x10", "ibc/27"} {
		if number, symbol, ok := Split(text); ok {
			t.Errorf("%q is %q of %q", text, number, symbol)
		}
	}
}

// A grain of a coin with 18 decimals is 10^9 base units: no order holds a part of one, and what is left is reported.
func TestGrains(t *testing.T) {
	if got := dai.Base(25_000_000_001); got.String() != "25000000001000000000" {
		t.Errorf("25.000000001 DAI are %s base units", got)
	}
	if got := usdc.Base(7); got.Int64() != 7 {
		t.Errorf("7 grains of USDC are %s base units", got)
	}
	n, left := dai.Grains(big.NewInt(3_999_999_999))
	if n != 3 || left.Int64() != 999_999_999 {
		t.Errorf("%d grains, %s left", n, left)
	}
	huge := new(big.Int).Lsh(big.NewInt(1), 200)
	if n, _ := dai.Grains(huge); n != math.MaxUint64 {
		t.Errorf("2^200 base units are %d grains", n)
	}
	if most := dai.Base(math.MaxUint64); most.BitLen() > 94 {
		t.Errorf("the largest amount has %d bits", most.BitLen())
	}
}

func TestRegistered(t *testing.T) {
	good := Registered{Coin: usdc, Waiting: 1000}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Registered){
		"the own coin":   func(r *Registered) { r.Denom = "" },
		"a long name":    func(r *Registered) { r.Denom = strings.Repeat("a", MaxDenom+1) },
		"no symbol":      func(r *Registered) { r.Symbol = "" },
		"capitals":       func(r *Registered) { r.Symbol = "USDC" },
		"digits":         func(r *Registered) { r.Symbol = "usd1" },
		"a known symbol": func(r *Registered) { r.Symbol = "zen" },
		"uzen":           func(r *Registered) { r.Symbol = "uzen" },
		"decimals":       func(r *Registered) { r.Exponent = MaxExponent + 1 },
		"no fee":         func(r *Registered) { r.Waiting = 0 },
		"a high fee":     func(r *Registered) { r.Waiting = maxWaiting + 1 },
	} {
		r := good
		spoil(&r)
		if err := r.Validate(); !errors.Is(err, ErrCoin) {
			t.Errorf("%s: %v", name, err)
		}
	}
	closed := good
	closed.Closed, closed.Waiting = true, 7
	if err := closed.Follows(good); err != nil {
		t.Error(err)
	}
	for _, other := range []Coin{{"ibc/A", "usdt", 6}, {"ibc/A", "usdc", 18}} {
		if err := (Registered{Coin: other, Waiting: 1}).Follows(good); !errors.Is(err, ErrCoin) {
			t.Errorf("%+v replaces %+v: %v", other, good, err)
		}
	}
}

// The fee of the network's own coin is what it was, and that of another one in proportion.
func TestWaitingFee(t *testing.T) {
	for opening, want := range map[int]uint64{0: 1000, 1023: 1000, 1024: 1010, 2 << 20: 21_480} {
		if got := Zen().WaitingFee(opening); got != want {
			t.Errorf("%d bytes: %d uzen, want %d", opening, got, want)
		}
	}
	if got := (Registered{Waiting: 50}).WaitingFee(4 << 10); got != 52 {
		t.Errorf("a small fee: %d", got)
	}
}

// Budgets in different coins compare by the fee for waiting, without overflow.
func TestRank(t *testing.T) {
	if Rank(5, 1000) != 5 || Rank(math.MaxUint64, 1000) != math.MaxUint64 || Rank(math.MaxUint64, 1) != math.MaxUint64 ||
		Rank(10, 2000) != 5 || Rank(7, 0) != 7000 {
		t.Error("a rank is wrong")
	}
}

// The amount of any text that is read is written as an equal number.
func FuzzParse(f *testing.F) {
	f.Add("25", uint32(6))
	f.Add("0.000000001", uint32(18))
	f.Fuzz(func(t *testing.T, text string, exponent uint32) {
		c := Coin{"x", "coin", exponent % (MaxExponent + 1)}
		n, err := c.Parse(text)
		if err != nil {
			return
		}
		was, ok := new(big.Rat).SetString("0" + text)
		is, _ := new(big.Rat).SetString(c.Amount(n))
		if !ok || was.Cmp(is) != 0 {
			t.Fatalf("%q is %d grains, which are %s", text, n, c.Amount(n))
		}
	})
}
