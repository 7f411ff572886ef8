package reward

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
)

// Due is the amount of a receipt for work or an audit that is paid in full: net, and the fee on top of it.
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
		lines := []string{fmt.Sprintf("%s of the epoch x %d / %d = %s, rounded down", r.Coin.Text(r.Pot), r.Part, r.Whole,
			r.Coin.Text(r.portion()))}
		if r.Capped {
			lines = append(lines, fmt.Sprintf("no more than %s %% of the fees of its work: %s", percent(ofFees[r.Kind]),
				r.Coin.Text(r.Amount)))
		}
		return lines
	case Standby:
		return []string{fmt.Sprintf("%s of the fees of the epoch x %d / %d = %s, rounded down", r.Coin.Text(r.Pot), r.Part,
			r.Whole, r.Coin.Text(r.Amount))}
	case Revenue:
		return []string{fmt.Sprintf("%s from before the number of shares last changed + %d shares x %s that each "+
			"earned since = %s", r.Coin.Text(r.Pot), r.Part, r.Coin.Text(r.Whole), r.Coin.Text(r.Pot+r.Part*r.Whole))}
	case Shared:
		return []string{fmt.Sprintf("%s x %d uzen that are delegated / %d uzen of all stake, rounded down, less a "+
			"commission of %s %%: %s", r.Coin.Text(r.Pot), r.Part, r.Whole, percent(r.FeePPM), r.Coin.Text(r.Amount))}
	case Slash:
		if r.OfEpoch() {
			return []string{fmt.Sprintf("%s: %s %% of the stake at the time, to the community pool", r.Coin.Text(r.Amount),
				percent(uint32(r.Part)))}
		}
		lines := []string{r.taken()}
		for _, part := range all {
			if r.sameVerdict(part) && (part.Kind == Bounty || part.Kind == Fee) {
				lines = append(lines, fmt.Sprintf("of it %s to %s", r.Coin.Text(part.Amount), part.Who))
			}
		}
		return lines
	case Bounty, Fee:
		for _, whole := range all {
			if r.sameVerdict(whole) && whole.Kind == Slash {
				return []string{fmt.Sprintf("%s: %s %% of the %s that %s lost, rounded %s", r.Coin.Text(r.Amount),
					percent(uint32(r.Part)), r.Coin.Text(whole.Amount), whole.Who, rounded[r.Kind])}
			}
		}
	case Refund:
		paid, fees := uint64(0), r.Fee
		for _, other := range all {
			if (other.Kind == Work || other.Kind == Audit) && other.Payer == "" {
				paid, fees = paid+other.Amount, fees+other.Fee
			}
		}
		return []string{fmt.Sprintf("budget %s - paid %s - fees %s = %s", r.Coin.Amount(r.Amount+paid+fees),
			r.Coin.Amount(paid), r.Coin.Amount(fees), r.Coin.Text(r.Amount))}
	}
	return nil
}

// ofFees bounds a reward by the fees of the account's work, in parts per million.
var ofFees = map[Kind]uint32{WorkReward: WorkOfFeesPPM, Bandwidth: BandwidthOfFeesPPM}

// taken says which part of a stake a slash took.
func (r Receipt) taken() string {
	if r.Reason == Restitution {
		return fmt.Sprintf("%s, of the %s of the stake at the time: the price of the work that it made void",
			r.Coin.Text(r.Part), r.Coin.Amount(r.Whole))
	}
	if r.Whole == million {
		return fmt.Sprintf("%s: %s %% of the stake at the time", r.Coin.Text(r.Amount), percent(uint32(r.Part)))
	}
	return fmt.Sprintf("%s, of the %s of the stake at the time: the gain of a lie in the job, with the share of "+
		"the accuser, and no less than"+
		" the governed part of a first conviction, or of one more", r.Coin.Text(r.Part), r.Coin.Amount(r.Whole))
}

// rounded is the direction in which a part of a slash is rounded.
var rounded = map[Kind]string{Bounty: "down", Fee: "up"}

// sameVerdict reports whether two receipts come of the verdict of one dispute.
func (r Receipt) sameVerdict(other Receipt) bool {
	return r.Round == other.Round && r.Unit == other.Unit && r.Height == other.Height && r.Reason == other.Reason &&
		r.Coin == other.Coin
}

// payment is the arithmetic of work and audits.
func (r Receipt) payment() []string {
	net, fee := r.Due()
	lines := []string{
		fmt.Sprintf("%d floating-point operations x %s / 10^15 = %s, rounded down", r.Flops, r.Coin.Text(r.Price),
			r.Coin.Text(net+fee)),
		fmt.Sprintf("less %s %% to the community pool, %s: %s", percent(r.FeePPM), r.Coin.Text(fee), r.Coin.Text(net)),
	}
	switch {
	case r.Amount == net && r.Fee == fee:
		if r.Payer != "" {
			lines = append(lines, "from the stake of "+r.Payer+", not from the budget")
		}
		return lines
	case r.Reason == BudgetExhausted:
		return append(lines, fmt.Sprintf("the escrow held no more than %s: %s paid, %s to the community pool",
			r.Coin.Text(r.Amount+r.Fee), r.Coin.Amount(r.Amount), r.Coin.Amount(r.Fee)))
	case r.Amount == 0 && r.Fee == 0:
		return append(lines, "not paid: "+r.Coin.Text(0))
	}
	return append(lines, fmt.Sprintf("the receipt says %s with a fee of %s, which does not add up", r.Coin.Text(r.Amount),
		r.Coin.Amount(r.Fee)))
}

// percent writes parts per million as a percentage, without needless digits.
func percent(ppm uint32) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%04d", ppm/10_000, ppm%10_000), "0"), ".")
}
