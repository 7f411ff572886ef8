package reward

import (
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Verifiers of the network at large are drawn for audits (transition.Env.Draw). Those that answer share a part of the
// fees, by their stake, so that enough of them wait for a draw. It is paid from the community pool, which has it from
// the fees of the same epoch; no coins are made for it. An account that pays itself for work gets back, with all
// rewards, less than the fees.

// StandbyOfFeesPPM is the part of the fees of the work of an epoch that its verifiers share for standing by, in parts
// per million.
const StandbyOfFeesPPM = 90_000

// standby is the part of a participant in the standby share.
func (l *epoch) standby(f Effort) (part uint64, reason string) {
	if f.Presence == nil || !f.Eligible(crew.Verifier, l.Registry) && !f.Jailed {
		return 0, ""
	}
	answered, missed := f.Presence.Shows(l.Registry, l.Height)
	rule, tiered := l.Registry.TierRule(f.Tier)
	switch {
	case f.Jailed:
		return 0, Barred
	case missed:
		return 0, DrawMissed
	case !answered:
		return 0, ""
	case !f.Offers:
		return 0, NoOffer
	case tiered && f.Uptime != nil && l.whole(f) && f.Uptime.PPM(l.Registry, l.Height) < rule.UptimePPM:
		return 0, Downtime
	}
	return f.Firm(), StoodBy
}

// pot is the standby share of all verifiers: a part of the fees of the epoch, as far as the community pool still has
// it.
func (l *epoch) pot() uint64 {
	var fees uint64
	for _, f := range l.Efforts {
		fees = saturate(fees, f.Fees)
	}
	return min(market.Share(fees, StandbyOfFeesPPM), l.Pool)
}
