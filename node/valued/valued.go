// Package valued says what the amounts of an account were worth in a unit of its owner, such as a currency, by rates
// that the owner gives. It knows no rates: a network vouches for none, and nothing that it pays depends on one.
package valued

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/coin"
)

// Errors of rates.
var (
	ErrRates = errors.New("not a file of rates")
	ErrNone  = errors.New("the file of rates has no rate")
)

const (
	maxBytes = 16 << 20 // of a file of rates
	maxName  = 32       // bytes of a unit
	maxRate  = 64       // bytes of a rate
	digits   = 6        // decimals of a value
	// MaxAge is for how long after its day a rate holds if no later one is there: markets close on some days.
	MaxAge = 7 * 24 * time.Hour
)

// Rates are the prices of one of each coin in a unit, by day.
type Rates struct {
	unit  string
	coins map[string][]rate // by the lower-case name of the coin; ascending days, the rate of no day first
}

type rate struct {
	day   time.Time // its first moment in UTC; zero: of all days without one
	price *big.Rat
}

// Read reads a file of rates in a unit: CSV with a line of names, then day (2026-11-30, or empty for all days without a
// rate), coin, and the price of one of it in the unit. Errors wrap ErrRates.
func Read(from io.Reader, unit string) (*Rates, error) {
	if unit == "" || len(unit) > maxName || strings.ContainsFunc(unit, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, fmt.Errorf("%w: the unit %q, wanted 1 to %d letters without spaces", ErrRates, unit, maxName)
	}
	limited := &io.LimitedReader{R: from, N: maxBytes + 1}
	in := csv.NewReader(limited)
	in.FieldsPerRecord, in.TrimLeadingSpace = 3, true
	rows, err := in.ReadAll()
	switch {
	case limited.N == 0:
		err = fmt.Errorf("more than %d bytes", maxBytes)
	case err == nil && (len(rows) == 0 || strings.Join(rows[0], ",") != "day,coin,rate"):
		err = errors.New("its first line is not day,coin,rate")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRates, err)
	}
	r := &Rates{unit, map[string][]rate{}}
	for i, row := range rows[1:] {
		if err := r.add(row); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrRates, i+2, err)
		}
	}
	for name, list := range r.coins {
		slices.SortFunc(list, func(a, b rate) int { return a.day.Compare(b.day) })
		for i := range list[1:] {
			if list[i].day.Equal(list[i+1].day) {
				return nil, fmt.Errorf("%w: two rates of %s for one day", ErrRates, name)
			}
		}
	}
	return r, nil
}

func (r *Rates) add(row []string) (err error) {
	var one rate
	if row[0] != "" {
		if one.day, err = time.Parse(time.DateOnly, row[0]); err != nil {
			return fmt.Errorf("the day %q, wanted one such as 2026-11-30, or none", row[0])
		}
	}
	name, price := strings.ToLower(row[1]), row[2]
	if name == "" || len(name) > maxName {
		return fmt.Errorf("the coin %q", row[1])
	}
	decimal := len(price) <= maxRate && strings.Trim(price, "0123456789.") == ""
	p, ok := new(big.Rat).SetString(price)
	if !decimal || !ok || p.Sign() <= 0 {
		return fmt.Errorf("the rate %q, wanted a positive decimal number", price)
	}
	one.price = p
	r.coins[name] = append(r.coins[name], one)
	return nil
}

// at is the price of a coin at a time, which is zero if it is not known. One of the unit itself is one.
func (r *Rates) at(c coin.Coin, at time.Time) (*big.Rat, error) {
	name := strings.ToLower(c.Name())
	if name == strings.ToLower(r.unit) {
		return big.NewRat(1, 1), nil
	}
	list := r.coins[name]
	for _, one := range slices.Backward(list) {
		if one.day.IsZero() || !at.IsZero() && !one.day.After(at) && at.Before(one.day.Add(MaxAge)) {
			return one.price, nil
		}
	}
	if at.IsZero() {
		return nil, fmt.Errorf("%w of %s without a day, and the network does not keep the block of an amount", ErrNone, name)
	}
	return nil, fmt.Errorf("%w of %s in %s for %s, nor for one of the six days before", ErrNone, name, r.unit,
		at.Format(time.DateOnly))
}

// Sum is what amounts were worth.
type Sum struct {
	Unit     string `json:"unit"`
	Received string `json:"received"`
	Lost     string `json:"lost"` // of stakes, and to delegators
}

// Value sets what each booking was worth at its time, in six decimals rounded to the nearest, and returns the sums of
// these. Errors wrap ErrNone.
func (r *Rates) Value(list []inspect.Booking) (Sum, error) {
	received, lost := new(big.Rat), new(big.Rat)
	for i, b := range list {
		price, err := r.at(b.Coin, b.Time)
		if err != nil {
			return Sum{}, err
		}
		grains := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(b.Coin.Digits())), nil)
		value := new(big.Rat).SetFrac(big.NewInt(b.Uzen), grains)
		list[i].Value, list[i].Unit = value.Mul(value, price).FloatString(digits), r.unit
		value.SetString(list[i].Value)
		if value.Sign() < 0 {
			lost.Sub(lost, value)
		} else {
			received.Add(received, value)
		}
	}
	return Sum{r.unit, received.FloatString(digits), lost.FloatString(digits)}, nil
}
