package cost

import (
	"math/bits"

	"github.com/starling-network/starling/protocol/audit"
)

// Hourly is the price of an hour of a machine of a rate, in operations a second, at a price; in uzen.
func Hourly(price, rate uint64) uint64 {
	amount, _ := Of(Multiply(rate, 3600), price)
	return amount
}

// PerFlops is the lowest price, in uzen per 10^15 operations, at which a machine earns an amount, in uzen, in an hour.
// The machine computes rate operations a second.
func PerFlops(hourly, rate uint64) uint64 {
	hour := max(1, Multiply(rate, 3600))
	return audit.Ratio(hourly, Flops, hour)
}

// Within is the highest price, in uzen per 10^15 operations, at which an hour of a machine costs an amount, in uzen, at
// most. The machine computes rate operations a second.
func Within(hourly, rate uint64) uint64 {
	hour := max(1, Multiply(rate, 3600))
	high, low := bits.Mul64(Add(hourly, 1), Flops)
	if low == 0 {
		high--
	}
	low--
	if high >= hour {
		return ^uint64(0)
	}
	price, _ := bits.Div64(high, low, hour)
	return price
}
