package audit

import (
	"math"
	"math/bits"
)

// CollusionPPM is the part of all draws of a verifier that may fall on accomplices of the audited, in parts per
// million: an adversary with a quarter of all stake has a quarter of them.
const CollusionPPM = 250_000

// TolerantPPM is the least rate of audits of tolerant work, whose workers are not slashed, in parts per million.
const TolerantPPM = 500_000

// Bond is the amount that a conviction must take, in uzen, from a member whose results are paid price uzen each, and
// audited each with a rate in parts per million. It is price / r rounded up, with r the part of the rate that does not
// fall on accomplices. A rate of zero has no bond: without audits no amount deters, and it is 0.
//
// With it no strategy gains. A faked result gains price at most, where it is paid, and a conviction forfeits all
// results that are not paid. So of m results that are open together, whatever was paid before, m price (1 - r)^m is
// gained at most, and Bond (1 - (1 - r)^m) >= price/r m r (1 - r)^(m-1) is lost: the probability of at least one audit
// is not below that of exactly one. A sum of such steps, none of which gains, gains nothing whenever it is stopped. It
// covers the last part of a result, too, where an audit executes a drawn one of k parts: price/k is gained, at a rate
// of r/k.
func Bond(price uint64, ratePPM uint32) uint64 {
	if ratePPM == 0 || price == 0 {
		return 0
	}
	caught := uint64(min(ratePPM, Certain)) * (Certain - CollusionPPM) // of 10^12
	return Ratio(price, Certain*Certain, caught)
}

// Ratio is amount a / b, rounded up; the largest number if it is beyond 64 bits, as where b is 0.
func Ratio(amount, a, b uint64) uint64 {
	high, low := bits.Mul64(amount, a)
	if high >= b {
		return math.MaxUint64
	}
	result, rest := bits.Div64(high, low, b)
	if rest > 0 && result < math.MaxUint64 {
		result++
	}
	return result
}
