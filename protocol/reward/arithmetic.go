package reward

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
)

// Due is the amount of a receipt for work or an audit that is paid in full: net, and the fee on top of it, in uzen.
func (r Receipt) Due() (net, fee uint64) {
	gross, _ := cost.Of(r.Flops, r.Price) // beyond 64 bits it saturates, as when it was paid
	fee = market.Share(gross, r.FeePPM)
	return gross - fee, fee
}

// Arithmetic explains how the amount of a receipt is computed, a line per step. all are the receipts of its job: the
// parts of a slash, and the payments that a refund is net of, are found among them.
func Arithmetic(r Receipt, all []Receipt) []string {
	switch r.Kind {
	case Work, Audit:
		return r.payment()
	case Base, WorkReward, Bandwidth:
		lines := []string{fmt.Sprintf("%s ZEN of the epoch x %d / %d = %s ZEN, rounded down", zen(r.Pot), r.Part, r.Whole,
			zen(r.portion()))}
		if r.Capped {
			lines = append(lines, fmt.Sprintf("no more than %s %% of the fees of its work: %s ZEN", percent(ofFees[r.Kind]),
				zen(r.Amount)))
		}
		return lines
	case Standby:
		return []string{fmt.Sprintf("%s ZEN of the fees of the epoch x %d / %d = %s ZEN, rounded down", zen(r.Pot), r.Part,
			r.Whole, zen(r.Amount))}
	case Revenue:
		return []string{fmt.Sprintf("%s ZEN from before the number of shares last changed + %d shares x %s ZEN that each "+
			"earned since = %s ZEN", zen(r.Pot), r.Part, zen(r.Whole), zen(r.Pot+r.Part*r.Whole))}
	case Slash:
		if r.OfEpoch() {
			return []string{fmt.Sprintf("%s ZEN: %s %% of the stake at the time, to the community pool", zen(r.Amount),
				percent(uint32(r.Part)))}
		}
		lines := []string{r.taken()}
		for _, part := range all {
			if r.sameVerdict(part) && (part.Kind == Bounty || part.Kind == Fee) {
				lines = append(lines, fmt.Sprintf("of it %s ZEN to %s", zen(part.Amount), part.Who))
			}
		}
		return lines
	case Bounty, Fee:
		for _, whole := range all {
			if r.sameVerdict(whole) && whole.Kind == Slash {
				return []string{fmt.Sprintf("%s ZEN: %s %% of the %s ZEN that %s lost, rounded %s", zen(r.Amount),
					percent(uint32(r.Part)), zen(whole.Amount), whole.Who, rounded[r.Kind])}
			}
		}
	case Refund:
		paid, fees := uint64(0), r.Fee
		for _, other := range all {
			if (other.Kind == Work || other.Kind == Audit) && other.Payer == "" {
				paid, fees = paid+other.Amount, fees+other.Fee
			}
		}
		return []string{fmt.Sprintf("budget %s - paid %s - fees %s = %s ZEN", zen(r.Amount+paid+fees), zen(paid), zen(fees),
			zen(r.Amount))}
	}
	return nil
}

// ofFees bounds a reward by the fees of the account's work, in parts per million.
var ofFees = map[Kind]uint32{WorkReward: WorkOfFeesPPM, Bandwidth: BandwidthOfFeesPPM}

// taken says which part of a stake a slash took.
func (r Receipt) taken() string {
	if r.Reason == Restitution {
		return fmt.Sprintf("%s ZEN, of the %s of the stake at the time: the price of the work that it made void",
			zen(r.Part), zen(r.Whole))
	}
	if r.Whole == million {
		return fmt.Sprintf("%s ZEN: %s %% of the stake at the time", zen(r.Amount), percent(uint32(r.Part)))
	}
	return fmt.Sprintf("%s ZEN, of the %s of the stake at the time: the gain of a lie in the job, with the share of "+
		"the accuser, and no less than"+
		" the governed part of a first conviction, or of one more", zen(r.Part), zen(r.Whole))
}

// rounded is the direction in which a part of a slash is rounded.
var rounded = map[Kind]string{Bounty: "down", Fee: "up"}

// sameVerdict reports whether two receipts come of the verdict of one dispute.
func (r Receipt) sameVerdict(other Receipt) bool {
	return r.Round == other.Round && r.Unit == other.Unit && r.Height == other.Height && r.Reason == other.Reason
}

// payment is the arithmetic of work and audits.
func (r Receipt) payment() []string {
	net, fee := r.Due()
	lines := []string{
		fmt.Sprintf("%d floating-point operations x %s ZEN / 10^15 = %s ZEN, rounded down", r.Flops, zen(r.Price),
			zen(net+fee)),
		fmt.Sprintf("less %s %% to the community pool, %s ZEN: %s ZEN", percent(r.FeePPM), zen(fee), zen(net)),
	}
	switch {
	case r.Amount == net && r.Fee == fee:
		if r.Payer != "" {
			lines = append(lines, "from the stake of "+r.Payer+", not from the budget")
		}
		return lines
	case r.Reason == BudgetExhausted:
		return append(lines, fmt.Sprintf("the escrow held no more than %s ZEN: %s paid, %s to the community pool",
			zen(r.Amount+r.Fee), zen(r.Amount), zen(r.Fee)))
	case r.Amount == 0 && r.Fee == 0:
		return append(lines, "not paid: 0.00 ZEN")
	}
	return append(lines, fmt.Sprintf("the receipt says %s ZEN with a fee of %s, which does not add up", zen(r.Amount),
		zen(r.Fee)))
}

// percent writes parts per million as a percentage, without needless digits.
func percent(ppm uint32) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%04d", ppm/10_000, ppm%10_000), "0"), ".")
}
