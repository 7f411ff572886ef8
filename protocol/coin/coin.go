// Package coin describes the coins in which orders may be placed: their names, their decimals, and how amounts of them
// are written and read. It converts no coin into another and knows no prices.
//
// The rules count in *grains*. A grain is the base unit of a coin, or, of a coin with more than nine decimals, 10^-9 of
// the coin. So an amount fits in 64 bits, and no order holds a part of a grain.
package coin

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// Limits of coins.
const (
	MaxDigits   = 9       // decimals that the rules count
	MaxExponent = 30      // decimals of a coin
	MaxDenom    = 128     // bytes
	maxSymbol   = 16      // bytes
	maxWaiting  = 1 << 40 // grains, of Registered.Waiting

	ownExponent = 6
	ownWaiting  = 1000 // uzen
)

// Errors of coins and amounts.
var (
	ErrCoin   = errors.New("coin: not a coin of orders")
	ErrAmount = errors.New("coin: not an amount")
)

// Coin is a coin of orders. The zero value is the network's own, ZEN, whose base unit is a uzen.
type Coin struct {
	Denom    string `cbor:"1,keyasint,omitempty" json:"denom,omitempty"`    // of the base unit, in the bank of the chain
	Symbol   string `cbor:"2,keyasint,omitempty" json:"symbol,omitempty"`   // lower-case: for people
	Exponent uint32 `cbor:"3,keyasint,omitempty" json:"decimals,omitempty"` // 10^Exponent base units are one coin
}

// Own reports whether the coin is the network's own.
func (c Coin) Own() bool { return c.Denom == "" }

// Name is the symbol as people read it.
func (c Coin) Name() string {
	if c.Own() {
		return "ZEN"
	}
	return strings.ToUpper(c.Symbol)
}

// Digits is the number of decimals that the rules count.
func (c Coin) Digits() int {
	if c.Own() {
		return ownExponent
	}
	return int(min(c.Exponent, MaxDigits))
}

// Base is an amount of grains in base units.
func (c Coin) Base(grains uint64) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(grains), c.scale())
}

// Grains is an amount of base units in whole grains, and the base units that are left. An amount beyond 64 bits
// saturates.
func (c Coin) Grains(base *big.Int) (grains uint64, left *big.Int) {
	whole, left := new(big.Int).QuoRem(base, c.scale(), new(big.Int))
	if !whole.IsUint64() {
		return math.MaxUint64, left
	}
	return whole.Uint64(), left
}

// scale is the number of base units in a grain.
func (c Coin) scale() *big.Int {
	if c.Own() {
		return big.NewInt(1)
	}
	exponent := int64(min(c.Exponent, MaxExponent)) // more is registered nowhere, and a stranger may say anything
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent-int64(c.Digits())), nil)
}

// Text writes an amount of grains with the name of the coin: 1.27 USDC.
func (c Coin) Text(grains uint64) string { return c.Amount(grains) + " " + c.Name() }

// Amount writes an amount of grains as a decimal number of coins, exactly, with at least two decimals if the coin has
// as many.
func (c Coin) Amount(grains uint64) string {
	digits := c.Digits()
	if digits == 0 {
		return fmt.Sprint(grains)
	}
	one := uint64(math.Pow10(digits))
	s := fmt.Sprintf("%d.%0*d", grains/one, digits, grains%one)
	keep := len(s) - max(0, digits-2)
	return s[:keep] + strings.TrimRight(s[keep:], "0")
}

// Float is about an amount of grains as a number of coins, for charts.
func (c Coin) Float(grains uint64) float64 { return float64(grains) / math.Pow10(c.Digits()) }

// Parse reads a decimal number of coins as grains, exactly: digits with at most one point, and no more decimals than
// the rules count but zeros.
func (c Coin) Parse(text string) (uint64, error) {
	whole, part, _ := strings.Cut(text, ".")
	digits, exact := c.Digits(), strings.TrimRight(part, "0")
	switch {
	case len(text) > 40 || whole+part == "" || strings.Trim(whole+part, "0123456789") != "":
		return 0, fmt.Errorf("%w: %q: give a decimal number of %s, such as 25", ErrAmount, text, c.Name())
	case len(exact) > digits:
		return 0, fmt.Errorf("%w: %q: an amount of %s has at most %d decimals", ErrAmount, text, c.Name(), digits)
	}
	n, ok := new(big.Int).SetString("0"+whole+exact+strings.Repeat("0", digits-len(exact)), 10)
	if !ok || !n.IsUint64() {
		return 0, fmt.Errorf("%w: %q: at most %s", ErrAmount, text, c.Text(math.MaxUint64))
	}
	return n.Uint64(), nil
}

// Split divides a text into a number and the symbol of a coin, in lower case; "" is the network's own. It reports
// whether it has that form at all.
func Split(text string) (number, symbol string, ok bool) {
	number = strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	symbol = strings.ToLower(text[len(number):])
	number = strings.TrimSpace(number)
	if symbol == strings.ToLower(Coin{}.Name()) {
		symbol = ""
	}
	return number, symbol, number != "" && strings.Trim(number, "0123456789.") == ""
}

// Registered is a coin in which orders may be placed, as governance registered it.
type Registered struct {
	Coin
	// Grains that an order of the smallest size pays if it ends without a run, in place of 1,000 uzen. It also ranks
	// budgets in different coins, and converts nothing.
	Waiting uint64 `cbor:"4,keyasint" json:"waiting"`
	Closed  bool   `cbor:"5,keyasint,omitempty" json:"closed,omitempty"` // it takes no new orders; those it has end in it
}

// Zen is the network's own coin. It needs no registration.
func Zen() Registered { return Registered{Waiting: ownWaiting} }

// Validate returns why a coin cannot be registered.
func (r Registered) Validate() error {
	switch {
	case r.Own() || len(r.Denom) > MaxDenom:
		return fmt.Errorf("%w: a denomination of %d bytes, wanted 1 to %d", ErrCoin, len(r.Denom), MaxDenom)
	case len(r.Symbol) < 2 || len(r.Symbol) > maxSymbol || strings.Trim(r.Symbol, letters) != "" || r.Symbol == "zen" ||
		r.Symbol == "uzen":
		return fmt.Errorf("%w: a symbol has 2 to %d lower-case letters and is not zen, not %q", ErrCoin, maxSymbol, r.Symbol)
	case r.Exponent > MaxExponent:
		return fmt.Errorf("%w: %d decimals, at most %d", ErrCoin, r.Exponent, MaxExponent)
	case r.Waiting == 0 || r.Waiting > maxWaiting:
		return fmt.Errorf("%w: %d for waiting, wanted 1 to %d", ErrCoin, r.Waiting, uint64(maxWaiting))
	}
	return nil
}

const letters = "abcdefghijklmnopqrstuvwxyz"

// Follows returns why a registration cannot replace an earlier one of the denomination: orders and offers under way
// count in its grains.
func (r Registered) Follows(earlier Registered) error {
	if r.Coin != earlier.Coin {
		return fmt.Errorf("%w: %s is registered as %s with %d decimals, which stays so", ErrCoin, r.Denom, earlier.Symbol,
			earlier.Exponent)
	}
	return nil
}

// WaitingFee is the cost of an order that ends without a run, in grains: the chain stored and tried it, with an opening
// of this number of bytes. It is the least budget of an order, too.
func (r Registered) WaitingFee(opening int) uint64 {
	return r.Waiting + r.Waiting*(uint64(opening)>>10)/100
}

// Rank is a budget in grains as a number that compares with budgets in other coins: in parts of a thousand of the fee
// for waiting. Of the network's own coin it is the budget.
func Rank(budget, waiting uint64) uint64 {
	high, low := bits.Mul64(budget, ownWaiting)
	if waiting = max(waiting, 1); high >= waiting {
		return math.MaxUint64
	}
	rank, _ := bits.Div64(high, low, waiting)
	return rank
}
