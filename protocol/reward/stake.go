package reward

import (
	"math"
	"math/bits"
)

// Deterring is the smallest stake S with p (R + S) >= C: with the audit probability p given in parts per million, who
// earns R for work that honestly costs C then loses by skipping it. Without audits no stake deters, and the answer is the
// largest amount.
func Deterring(cost, pay uint64, auditPPM uint32) uint64 {
	if cost == 0 {
		return 0
	}
	high, low := bits.Mul64(cost, 1_000_000)
	if high >= uint64(auditPPM) {
		return math.MaxUint64
	}
	needed, rest := bits.Div64(high, low, uint64(auditPPM))
	if rest > 0 && needed < math.MaxUint64 {
		needed++
	}
	return needed - min(needed, pay)
}
