package reward

import (
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// drop closes the books of a round that was rolled back and is replaced by another. It was built on wrong work, which
// is not the fault of its workers: a committed unit had its chance of an audit, and is paid as if the round were
// final. The consumer also pays for the round that replaces it, so the stakes of the convicted pay first, and the
// budget pays the part that they do not hold. Committed units that could no longer be audited are paid from these
// stakes alone: otherwise a conviction on purpose would make the consumer pay accomplices for nothing.
func (l *ledger) drop(lap work.RoundState) {
	before := map[string]uint64{}
	for _, id := range lap.Culprits {
		before[id] = l.stake(id)
	}
	for _, u := range lap.Units {
		m, _ := l.state.Member(u.Worker)
		switch convicted := m.Why == reason.Verdict; {
		case u.Worker == "":
		case !convicted && !u.Withheld && (u.Status == work.Accepted || u.Status == work.Committed) && l.restore(lap, u, m):
		case u.Status == work.Accepted:
			l.payUnit(lap.Round, u, RolledBack)
		default:
			l.unpaid(Work, lap.Round, u.Index, u.Worker, Unchecked)
		}
	}
	for _, id := range lap.Culprits {
		l.restitution(lap.Round, 0, id, before[id])
		before[id] = l.stake(id)
	}
}

// restore pays a unit from the stake of the first of the convicted that holds its whole price, if one does.
func (l *ledger) restore(lap work.RoundState, u *work.Unit, m crew.Member) bool {
	return l.payBy(lap.Culprits, Work, lap.Round, u.Index, m, l.state.Terms.FlopsOf(u.Index), RolledBack) != ""
}

// payBy pays work from the stake of the first of the convicted accounts that holds its whole price. It returns that
// account; empty: none does, and the work is not paid.
func (l *ledger) payBy(culprits []string, kind Kind, round, unit uint32, m crew.Member, flops uint64,
	reason string) (payer string) {
	gross, _ := cost.Of(flops, m.Price)
	for _, id := range culprits {
		if gross == 0 || l.stake(id) < gross || id == m.ID {
			continue
		}
		fee := market.Share(gross, l.book.FeePPM)
		l.receipt(Receipt{Round: round, Unit: unit, Who: m.ID, Role: m.Class(), Kind: kind, Flops: flops, Price: m.Price,
			Coin: l.book.Coin, FeePPM: l.book.FeePPM, Amount: gross - fee, Fee: fee, Reason: reason, Payer: id})
		l.from(l.purse(id), m.ID, gross-fee)
		l.from(l.purse(id), CommunityPool, fee)
		return id
	}
	return ""
}

// payAudit pays an audit: one that a conviction has caused from the stake of the convicted first. So colluders that
// have their work audited repeatedly pay for that themselves, and the budget keeps the pay of others.
func (l *ledger) payAudit(e event.Event, who, worker string, flops uint64, reason string) {
	culprits := l.culprits(e.Round, e.Unit, who, worker)
	before := make([]uint64, len(culprits))
	for i, id := range culprits {
		before[i] = l.stake(id)
	}
	m, _ := l.state.Member(who)
	payer := l.payBy(culprits, Audit, e.Round, e.Unit, m, flops, reason)
	if payer == "" {
		l.pay(Audit, e.Round, e.Unit, who, flops, reason)
		return
	}
	for i, id := range culprits {
		if id == payer {
			l.restitution(e.Round, e.Unit, id, before[i])
			return
		}
	}
}

// culprits are the convicted accounts that have caused an audit: the worker whose unit is audited again, or the
// workers whose conviction rolled back its round.
func (l *ledger) culprits(round, unit uint32, verifier, worker string) []string {
	if m, _ := l.state.Member(worker); m.Why == reason.Verdict {
		return []string{worker}
	}
	for _, lap := range l.state.RolledBack {
		if lap.Round == round && uint64(unit) < uint64(len(lap.Units)) && lap.Units[unit].Verifier == verifier &&
			lap.Units[unit].Worker == worker {
			return lap.Culprits
		}
	}
	return nil
}

// restitution writes a receipt of how much less a stake is than it was.
func (l *ledger) restitution(round, unit uint32, id string, before uint64) {
	if amount := before - l.stake(id); amount > 0 {
		m, _ := l.state.Member(id)
		l.receipt(Receipt{Round: round, Unit: unit, Who: id, Role: m.Class(), Kind: Slash, Amount: amount,
			Reason: Restitution, Coin: l.book.Coin, Part: amount, Whole: before})
	}
}

// purse is a stake of an account in one coin.
type purse struct {
	id   string
	coin coin.Coin
}

// purse is the stake of an account in the coin of the order, which backs its work in the order.
func (l *ledger) purse(id string) purse { return purse{id, l.book.Coin} }

// purses are the stakes of an account that a conviction takes from: in the network's own coin, and in that of the
// order.
func (l *ledger) purses(id string) []purse {
	if l.book.Coin.Own() {
		return []purse{l.purse(id)}
	}
	return []purse{{id: id}, l.purse(id)}
}

// account is the account of transfers out of a stake.
func (p purse) account() string {
	if p.coin.Own() {
		return Stake(p.id)
	}
	return CoinStake(p.id)
}

// holds is the rest of a stake in this transition.
func (l *ledger) holds(p purse) uint64 {
	has := l.book.Stake
	if !p.coin.Own() {
		has = l.book.CoinStake
	}
	return has(p.id) - l.taken[p.account()]
}

// stake is the rest of the stake of an account in the coin of the order.
func (l *ledger) stake(id string) uint64 { return l.holds(l.purse(id)) }

// from moves an amount out of a stake.
func (l *ledger) from(p purse, to string, amount uint64) {
	if l.taken == nil {
		l.taken = map[string]uint64{}
	}
	l.taken[p.account()] += amount
	l.transfer(Transfer{From: p.account(), To: to, Amount: amount})
}
