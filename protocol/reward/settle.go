package reward

import (
	"math/bits"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// SettlementInput is the input of Settle besides the run.
type SettlementInput struct {
	Consumer string
	Coin     coin.Coin // of the order: of the escrow, and of all prices
	Escrow   market.Escrow
	Penalty  penalty.Params         // of a lost dispute
	FeePPM   uint32                 // of every payment, to the community pool
	Waiting  uint64                 // grains that the job costs if no unit was ever committed
	Stake    func(id string) uint64 // uzen staked by a member now
	// what a member has staked in Coin now, if this is not the network's own
	CoinStake func(id string) uint64
	// Height of the latest conviction of a member before, 0: none; the smallest stake of a role, in uzen; and whether a
	// member earns its stake, all of which a verdict then takes. nil: none.
	Convicted func(id string) int64
	Least     func(r crew.Role) uint64
	Earning   func(id string) bool
	Height    int64
	Seq       uint64 // of the next receipt
}

// Settlement has the receipts and transfers of a transition.
type Settlement struct {
	Receipts  []Receipt
	Transfers []Transfer
	Escrow    market.Escrow // after the transfers
	Seq       uint64        // of the next receipt
}

// Settle books the events of one transition, given the state after it. A unit is paid when its round is final, or when
// the round is rolled back over another's lie and nothing was open about the unit; an audit when it passes, or when the
// verdict confirms it. When the run is done or halted the rest of the budget returns to the consumer.
func Settle(s run.State, events []event.Event, b SettlementInput) Settlement {
	l := &ledger{Settlement: Settlement{Escrow: b.Escrow, Seq: b.Seq}, state: s, book: b}
	for _, e := range events {
		l.settle(e)
	}
	return l.Settlement
}

// Settles reports whether Settle books an event. Other events, most commitments among them, need no SettlementInput.
func Settles(e event.Event) bool {
	switch e.Kind {
	case event.UnitReassigned, event.AuditPassed, event.AuditOutside, event.AuditMissed, event.AuditBroken,
		event.DepositForfeited, event.DepositReturned, event.DisputeEnded, event.CheckpointRefuted, event.RoundFinal,
		event.RoundDropped, event.RunHalted, event.RunDone:
		return true
	}
	return false
}

type ledger struct {
	Settlement
	state run.State
	book  SettlementInput
	taken map[string]uint64 // from stakes, in this transition, by Transfer.From
}

func (l *ledger) settle(e event.Event) {
	switch e.Kind {
	case event.UnitReassigned:
		l.unpaid(Work, e.Round, e.Unit, e.Who, lostUnit(e.Why))
	case event.AuditPassed:
		l.payAudit(e, e.Who, e.Other, audited(l.state.Terms, e.Unit, e.Segment), Verified)
	case event.AuditOutside:
		l.pay(Audit, e.Round, e.Unit, e.Who, l.state.Terms.FlopsOf(e.Unit), FoundOutside)
	case event.AuditMissed:
		l.unpaid(Audit, e.Round, e.Unit, e.Who, lostAudit(e.Why))
	case event.AuditBroken:
		switch e.Why {
		case reason.PlantPassed:
			l.slash(e, e.Who, e.Other)
		case reason.FalseReport:
			l.slash(e, e.Who, "")
		case reason.SealUnopened:
			l.part(e, e.Who, "", l.book.Penalty.UnopenedPPM)
		}
	case event.DepositForfeited:
		l.forfeit(e)
	case event.DepositReturned:
		l.unpaid(Deposit, e.Round, e.Unit, e.Who, DepositReturned)
	case event.CheckpointRefuted: // a quorum does not err as a machine does
		l.part(e, e.Who, e.Other, l.book.Penalty.SlashPPM)
	case event.DisputeEnded:
		switch e.Why {
		case reason.WrongWork, reason.Silent:
			if e.Why == reason.Silent { // nothing was shown: accusing an offline worker must not pay
				l.unpaid(Audit, e.Round, e.Unit, e.Who, NothingShown)
				l.slash(e, e.Other, "")
				return
			}
			l.slash(e, e.Other, e.Who)
			l.payAudit(e, e.Who, e.Other, l.state.Terms.FlopsOf(e.Unit), FaultFound)
		default:
			l.unpaid(Audit, e.Round, e.Unit, e.Who, FalseChallenge)
			l.slash(e, e.Who, e.Other)
		}
	case event.RoundFinal:
		for _, u := range e.RoundState.Units {
			l.payUnit(e.Round, u, Verified)
		}
	case event.RoundDropped:
		l.drop(*e.RoundState)
	case event.RunHalted:
		for _, lap := range l.state.Rounds() {
			l.abandon(lap, lap.Attested > 0 || e.Why == reason.Diverged, Verified)
		}
		for _, lap := range l.state.RolledBack {
			l.unasked(lap)
			l.drop(lap)
		}
		l.refund(e, e.Why)
	case event.RunDone:
		l.refund(e, RunDone)
	}
}

// payUnit pays an accepted unit, unless its worker was convicted before that: then it forfeits what it is not paid yet;
// or did not serve what it drew.
func (l *ledger) payUnit(round uint32, u *work.Unit, why string) {
	if m, _ := l.state.Member(u.Worker); m.Why == reason.Verdict {
		l.unpaid(Work, round, u.Index, u.Worker, Forfeited)
		return
	}
	if u.Withheld {
		l.unpaid(Work, round, u.Index, u.Worker, Unavailable)
		return
	}
	l.pay(Work, round, u.Index, u.Worker, l.state.Terms.FlopsOf(u.Index), why)
}

// audited is how many operations an audit of a unit executes that goes to the end of a segment; 0: all of them.
func audited(t terms.Terms, unit, segment uint32) uint64 {
	if segment == 0 || segment >= t.SegmentsOf(unit) {
		return t.FlopsOf(unit)
	}
	whole := t.UnitFlops
	if len(t.Pipeline.Flops) > 0 { // stages differ in what a segment takes
		whole = t.FlopsOf(unit)
	}
	high, low := bits.Mul64(whole, uint64(segment))
	flops, _ := bits.Div64(high, low, uint64(t.Segments)) // less than whole
	return flops
}

// pay pays the execution of a unit, or of a part of it, from the escrow.
func (l *ledger) pay(kind Kind, round, unit uint32, who string, flops uint64, reason string) {
	m, _ := l.state.Member(who)
	// A cost beyond 64 bits saturates, and no escrow holds as much.
	gross, _ := cost.Of(flops, m.Price)
	var net, fee uint64
	l.Escrow, net, fee = l.Escrow.Pay(gross, l.book.FeePPM)
	switch {
	case gross == 0:
		reason = TooSmall
	case net+fee < gross:
		reason = BudgetExhausted
	}
	l.receipt(Receipt{Round: round, Unit: unit, Who: who, Role: m.Class(), Kind: kind, Coin: l.book.Coin,
		Flops: flops, Price: m.Price, FeePPM: l.book.FeePPM, Amount: net, Fee: fee, Reason: reason})
	l.transfer(Transfer{From: Escrow, To: who, Amount: net, Pay: true})
	l.transfer(Transfer{From: Escrow, To: CommunityPool, Amount: fee})
}

func (l *ledger) unpaid(kind Kind, round, unit uint32, who, reason string) {
	m, _ := l.state.Member(who)
	l.receipt(Receipt{Round: round, Unit: unit, Who: who, Role: m.Class(), Kind: kind, Coin: l.book.Coin,
		Flops: l.state.Terms.FlopsOf(unit), Price: m.Price, FeePPM: l.book.FeePPM, Reason: reason})
}

// slash takes Penalty.Taken from the stake of the loser of a dispute, or of a verifier that passed a unit without
// executing it. A part goes to the winner, if there is one, and the rest to the community pool, so that a liar that
// convicts itself under another name still loses.
//
// For an order in another coin it takes from both stakes: from that in the coin what deters the lie, and from that in
// the network's own coin what a conviction takes at least.
func (l *ledger) slash(e event.Event, loser, winner string) {
	m, _ := l.state.Member(loser)
	m.ID = loser
	for _, p := range l.purses(loser) {
		c := l.convicted(m, p)
		amount, to := l.book.Penalty.Taken(c), winner
		if l.book.Earning != nil && l.book.Earning(loser) { // all of its pay, of which no accomplice gets a part
			amount, to = c.Stake, ""
		}
		l.take(p, e, loser, to, amount, amount, c.Stake)
	}
}

// part takes a part of each stake, in parts per million.
func (l *ledger) part(e event.Event, loser, winner string, lost uint32) {
	for _, p := range l.purses(loser) {
		_, amount := registry.Participant{Stake: l.holds(p)}.Slash(lost)
		l.take(p, e, loser, winner, amount, uint64(lost), million)
	}
}

// forfeit takes what backs the work of a worker from its stake, for the community pool: no account gains by reporting
// that the work of others is outside, or that values of a link are hidden.
func (l *ledger) forfeit(e event.Event) {
	m, _ := l.state.Member(e.Who)
	order := market.Order{Terms: l.state.Terms}
	stake := l.stake(e.Who)
	amount := min(stake, order.Value(crew.Worker, m.Price))
	e.Why = DepositForfeited
	l.take(l.purse(e.Who), e, e.Who, "", amount, amount, stake)
}

// take takes an amount of a stake, which is a part of a whole.
func (l *ledger) take(p purse, e event.Event, loser, winner string, amount, of, whole uint64) {
	receipt := func(kind Kind, who string, amount, of, whole uint64) {
		m, _ := l.state.Member(who)
		l.receipt(Receipt{Round: e.Round, Unit: e.Unit, Who: who, Role: m.Class(), Kind: kind, Amount: amount, Reason: e.Why,
			Part: of, Whole: whole, Coin: p.coin})
	}
	receipt(Slash, loser, amount, of, whole)
	var bounty uint64
	rest := uint64(million)
	if winner != "" {
		ppm := uint64(l.book.Penalty.BountyPPM)
		bounty = market.Share(amount, l.book.Penalty.BountyPPM)
		receipt(Bounty, winner, bounty, ppm, million)
		rest -= ppm
	}
	receipt(Fee, CommunityPool, amount-bounty, rest, million)
	l.from(p, winner, bounty)
	l.from(p, CommunityPool, amount-bounty)
}

// abandon closes the open parts of a round in a halted run. In an attested round the units with nothing open are paid:
// the consumer has their work. So are those of a round that was rolled back, or that showed that the job diverges.
// Audits of members that left ended with an event of their own.
func (l *ledger) abandon(lap work.RoundState, pays bool, reason string) {
	for _, u := range lap.Units {
		switch {
		case u.Status == work.Accepted && pays:
			l.payUnit(lap.Round, u, reason)
		case u.Worker != "":
			l.unpaid(Work, lap.Round, u.Index, u.Worker, RunHalted)
		}
	}
	l.unasked(lap)
}

// unasked closes the audits and challenges of a round that a halted run leaves without an answer.
func (l *ledger) unasked(lap work.RoundState) {
	for _, u := range lap.Units {
		for _, x := range u.Looks {
			if v, _ := l.state.Member(x.Verifier); v.Active || !x.Seal.IsZero() {
				l.unpaid(Audit, lap.Round, u.Index, x.Verifier, RunHalted)
			}
		}
		if v, _ := l.state.Member(u.Verifier); u.Status == work.Auditing && v.Active || u.Status == work.Sealed {
			l.unpaid(Audit, lap.Round, u.Index, u.Verifier, RunHalted)
		}
		for _, id := range u.Challengers {
			l.unpaid(Audit, lap.Round, u.Index, id, RunHalted)
		}
	}
}

func (l *ledger) refund(e event.Event, reason string) {
	var fee, amount uint64
	if !l.state.Opened() { // it cost the chain as much as an order that is never matched
		l.Escrow, fee = l.Escrow.Charge(l.book.Waiting)
	}
	l.Escrow, amount = l.Escrow.Close()
	l.receipt(Receipt{Round: e.Round, Who: l.book.Consumer, Kind: Refund, Amount: amount, Fee: fee, Reason: reason,
		Coin: l.book.Coin})
	l.transfer(Transfer{From: Escrow, To: CommunityPool, Amount: fee})
	l.transfer(Transfer{From: Escrow, To: l.book.Consumer, Amount: amount})
}

func (l *ledger) receipt(r Receipt) {
	r.Job, r.Height, r.Seq = l.state.Terms.Job, l.book.Height, l.Seq
	if r.Kind != Bounty && r.Kind != Fee { // these go to accounts that are not at fault
		r.Fix = fixes[r.Reason]
	}
	l.Seq++
	l.Receipts = append(l.Receipts, r)
}

func (l *ledger) transfer(t Transfer) {
	if t.Amount > 0 {
		l.Transfers = append(l.Transfers, t)
	}
}
