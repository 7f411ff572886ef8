// Package deterrence computes what faking is expected to gain its author, and the stake for which it gains nothing. It
// shows what the parameters of a network are worth; no rule calls it, and nothing is paid or taken here.
package deterrence

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward/penalty"
)

// ErrCheatModel is wrapped by the error for a model that cannot be computed.
var ErrCheatModel = errors.New("reward: the model of cheating cannot be computed")

// Limits of a model. They keep every sum of amounts within 64 bits, and the error of a probability below 10^-9.
const (
	MaxCheatSum   = 1 << 60 // uzen
	MaxCheatSteps = 1 << 28
)

// Certainty is the unit of the probabilities in Odds.
const Certainty = 1_000_000_000_000_000_000

const million = 1_000_000

// CheatModel is a worker that is paid for work and leaves a part of it undone, in the hope that no audit hits that
// part. The work has a number of steps, each audited with the same probability independently of the others; a network
// audits work units, so there a step is a unit. An audit of a step that was not done always finds it: re-execution is
// bit-exact.
type CheatModel struct {
	Stake    uint64 // uzen that a conviction takes
	Reward   uint64 // uzen for the whole work, which a conviction forfeits
	Cost     uint64 // uzen that the whole work costs the worker
	AuditPPM uint32 // probability of an audit, in parts per million
	Steps    uint32 // of the work
	CheatPPM uint32 // part of the steps that is left undone, in parts per million; rounded up to whole steps
}

// ExpectedGain is the result of a model.
type ExpectedGain struct {
	Faked     uint32 // steps left undone
	Detection uint64 // probability that at least one of them is audited, in 1/Certainty: 1 - (1 - p)^Faked
	// uzen that cheating is expected to gain over honest work, rounded down: saved cost - Detection (Reward + Stake)
	Gain   int64
	Needed uint64 // uzen: the smallest stake for which Gain is not above 0; NoStake if none is large enough
	Audits uint64 // uzen that the audits of the work are expected to cost, which is the overhead on the network
}

// NoStake stands for a stake that does not exist.
const NoStake = math.MaxUint64

func (w CheatModel) check() error {
	switch {
	case max(w.Stake, w.Reward, w.Cost) > MaxCheatSum:
		return fmt.Errorf("%w: amounts above %d uzen", ErrCheatModel, uint64(MaxCheatSum))
	case w.AuditPPM > million || w.CheatPPM > million:
		return fmt.Errorf("%w: a rate or fraction above 1", ErrCheatModel)
	case w.Steps < 1 || w.Steps > MaxCheatSteps:
		return fmt.Errorf("%w: %d steps, wanted 1 to %d", ErrCheatModel, w.Steps, MaxCheatSteps)
	}
	return nil
}

// Gain computes a model. A rational worker stays honest when the gain is not above 0. Since the probability of being
// caught is concave in the steps left undone, the stake that deters leaving out everything deters leaving out a part.
func (w CheatModel) Gain() (ExpectedGain, error) {
	if err := w.check(); err != nil {
		return ExpectedGain{}, err
	}
	o := ExpectedGain{
		Faked:  uint32((uint64(w.Steps)*uint64(w.CheatPPM) + million - 1) / million),
		Audits: market.Share(w.Cost, w.AuditPPM),
	}
	o.Detection = Certainty - power(Certainty/million*uint64(million-w.AuditPPM), o.Faked)
	// Both sides of saved > Detection (Reward + Stake), times Steps and Certainty.
	saved := product(w.Cost, uint64(o.Faked), Certainty)
	lost := product(o.Detection, w.Reward+w.Stake, uint64(w.Steps))
	gain := new(big.Int).Sub(saved, lost)
	o.Gain = gain.Div(gain, product(uint64(w.Steps), Certainty)).Int64() // Div rounds down for a positive divisor
	o.Needed = needed(saved, product(o.Detection, uint64(w.Steps)), w.Reward)
	return o, nil
}

// needed is saved/weight - reward, rounded up, at least 0.
func needed(saved, weight *big.Int, reward uint64) uint64 {
	switch {
	case saved.Sign() == 0:
		return 0
	case weight.Sign() == 0:
		return NoStake
	}
	stake := saved.Add(saved, weight)
	stake.Sub(stake, big.NewInt(1)).Div(stake, weight)
	stake.Sub(stake, new(big.Int).SetUint64(reward))
	switch {
	case stake.Sign() <= 0:
		return 0
	case !stake.IsUint64():
		return NoStake
	}
	return stake.Uint64()
}

// ToPost is the stake of which a conviction takes an amount, when it takes slashPPM parts per million of the stake;
// NoStake if none is enough.
func ToPost(taken uint64, slashPPM uint32) uint64 {
	if taken == 0 {
		return 0
	}
	return audit.Ratio(taken, million, uint64(slashPPM))
}

// Seat is the stake that must stand behind a seat whose results are paid price uzen each and audited with a rate in
// parts per million: audit.Bond, times the cover that governance asks for, at least an amount. market.Order.Stake asks
// it of members; NoStake if none is large enough.
func Seat(price uint64, ratePPM, coverPPM uint32, least uint64) uint64 {
	return max(audit.Ratio(audit.Bond(price, ratePPM), uint64(coverPPM), million), least)
}

// Temptation is the expected gain of one faked result for an author with a stake behind its seat, in uzen, rounded up.
// The author is assumed to own a quarter of the auditors, and the accuser, so that it loses only the part of the
// penalty that no accuser gets. Faking pays only if the result is above 0.
func Temptation(p penalty.Params, price, stake uint64, ratePPM uint32) int64 {
	taken := p.Taken(penalty.Conviction{Stake: min(stake, MaxCheatSum), Bond: audit.Bond(price, ratePPM)})
	taken -= market.Share(taken, p.BountyPPM)
	return expected(price, taken, uint64(ratePPM)*(million-audit.CollusionPPM))
}

// Backed is the expected gain of one faked unit of tolerant work for an author with a stake behind its seat, in uzen,
// rounded up. The author is assumed to own a quarter of all verifiers: the unit is paid, unless all verifiers of its
// panel find it outside, which takes its deposit.
func Backed(price, stake uint64, ratePPM uint32) int64 {
	return expected(price, min(stake, MaxCheatSum, audit.Deposit(price, ratePPM)), million*uint64(audit.Forfeits(ratePPM)))
}

// expected is (1 - caught) price - caught taken, rounded up, with caught in parts per 10^12.
func expected(price, taken, caught uint64) int64 {
	gain := new(big.Int).Sub(product(min(price, MaxCheatSum), million*million-caught), product(taken, caught))
	rest := new(big.Int)
	gain.DivMod(gain, product(million, million), rest)
	if rest.Sign() > 0 {
		gain.Add(gain, big.NewInt(1))
	}
	return gain.Int64()
}

// power is x^n for x in 1/Certainty, by squaring. Each product is rounded to the nearest.
func power(x uint64, n uint32) uint64 {
	result := uint64(Certainty)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = scaled(result, x)
		}
		x = scaled(x, x)
	}
	return result
}

// scaled is a * b for factors in 1/Certainty, none above 1.
func scaled(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	low, carry := bits.Add64(low, Certainty/2, 0)
	quotient, _ := bits.Div64(high+carry, low, Certainty)
	return quotient
}

func product(factors ...uint64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, new(big.Int).SetUint64(f))
	}
	return p
}
