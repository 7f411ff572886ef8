package spending

import (
	"maps"
	"slices"
)

// Amounts are amounts of coins by their symbols, "" of ZEN, in millionths of a coin.
type Amounts map[string]uint64

// Add adds amounts.
func (a Amounts) Add(other Amounts) {
	for symbol, n := range other {
		a[symbol] += n
	}
}

// Take takes as much of other amounts as there is.
func (a Amounts) Take(other Amounts) {
	for symbol, n := range other {
		a[symbol] -= min(a[symbol], n)
	}
}

// Lacks is the first coin, by symbol, of which there is less than in other amounts.
func (a Amounts) Lacks(other Amounts) (symbol string, lacks bool) {
	for _, symbol := range slices.Sorted(maps.Keys(other)) {
		if a[symbol] < other[symbol] {
			return symbol, true
		}
	}
	return "", false
}
