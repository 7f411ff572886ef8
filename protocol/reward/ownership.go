package reward

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/coin"
)

// Shares is how many shares there are of a model. They are tokens, and may change hands.
const Shares = 1_000_000

// ShareBalance is some shares of a model.
type ShareBalance struct {
	Who    string
	Shares uint64
}

// Grant divides the shares of a model: a part, in parts per million, among the accounts with verified work in its run,
// in proportion to their operations, by the largest remainder and then the lesser account; the rest to the consumer.
// Without verified work the consumer has them all. The order of the work does not matter; each account is in it once.
func Grant(consumer string, ppm uint32, work []ShareBalance) []ShareBalance {
	work = slices.Clone(work)
	slices.SortFunc(work, func(a, b ShareBalance) int { return cmp.Compare(a.Who, b.Who) })
	var whole uint64
	for _, w := range work {
		whole = saturate(whole, w.Shares)
	}
	pot := uint64(min(ppm, million)) // of a million shares
	if whole == 0 {
		pot = 0
	}
	left := pot
	rests := make([]uint64, len(work))
	for i, w := range work {
		var rest uint64
		if whole > 0 {
			high, low := bits.Mul64(pot, min(w.Shares, whole))
			work[i].Shares, rest = bits.Div64(high, low, whole)
		}
		work[i].Shares = min(work[i].Shares, left) // if the sum saturated
		rests[i] = rest
		left -= work[i].Shares
	}
	byRest := make([]int, len(work))
	for i := range byRest {
		byRest[i] = i
	}
	slices.SortStableFunc(byRest, func(a, b int) int { return cmp.Compare(rests[b], rests[a]) })
	for _, i := range byRest[:min(left, uint64(len(byRest)))] {
		work[i].Shares++
		left--
	}
	granted := []ShareBalance{{consumer, Shares - pot + left}}
	for _, w := range work {
		switch {
		case w.Who == consumer:
			granted[0].Shares += w.Shares
		default:
			granted = append(granted, w)
		}
	}
	return slices.DeleteFunc(granted, func(h ShareBalance) bool { return h.Shares == 0 })
}

// Model is a model whose shares are held, and the revenue that was paid in for it in one coin. Every share has earned
// the same amount, so a payment costs the same for any number of holders.
type Model struct {
	Job      string    `cbor:"1,keyasint"`          // or the name of a listed work that no job trained
	PerShare uint64    `cbor:"2,keyasint"`          // grains that every share has earned so far
	Carry    uint64    `cbor:"3,keyasint"`          // grains that were too few to divide; fewer than Shares
	Held     uint64    `cbor:"4,keyasint"`          // grains paid in and not claimed, Carry among them
	Issued   uint64    `cbor:"5,keyasint"`          // receipts of claims
	Coin     coin.Coin `cbor:"6,keyasint,omitzero"` // of the revenue: there is a Model for each coin
}

// Book is the job that receipts of the revenue of the model give: model/JOB, with the symbol of another coin than the
// network's own after another slash. No job can have that name.
func (m Model) Book() string {
	if m.Coin.Own() {
		return modelBook + m.Job
	}
	return modelBook + m.Job + "/" + m.Coin.Symbol
}

// maxHeld is the limit of the revenue that a model holds, in grains.
const maxHeld = 1 << 63

// Takes reports whether a payment can be added: all amounts stay within 64 bits.
func (m Model) Takes(amount uint64) bool { return amount < maxHeld && m.Held < maxHeld-amount }

const modelBook = "model/"

// Pay divides revenue, in grains, over all shares.
func (m Model) Pay(amount uint64) Model {
	all := m.Carry + amount
	m.PerShare += all / Shares
	m.Carry = all % Shares
	m.Held += amount
	return m
}

// Holder is the revenue of a holder of shares: up to Mark it is in Due.
type Holder struct {
	Mark uint64 `cbor:"1,keyasint"` // Model.PerShare when this was written
	Due  uint64 `cbor:"2,keyasint"` // grains
}

// Accrue credits a holder with the earnings of its shares. It must be called before their number changes.
func (h Holder) Accrue(m Model, shares uint64) Holder {
	return Holder{Mark: m.PerShare, Due: h.Due + shares*(m.PerShare-h.Mark)}
}

// Claim pays a holder with this number of shares the amount that it is due, and returns the receipt: the credit from
// before its shares last changed, and the earnings of each share since. If nothing is due, the model does not change.
func (m Model) Claim(who string, h Holder, shares uint64, height int64) (Model, Holder, Receipt) {
	now := h.Accrue(m, shares)
	r := Receipt{
		Job: m.Book(), Seq: m.Issued, Height: height, Who: who, Kind: Revenue, Amount: now.Due, Reason: PaidIn,
		Pot: h.Due, Part: shares, Whole: m.PerShare - h.Mark, Coin: m.Coin,
	}
	if now.Due == 0 {
		r.Reason, r.Fix = NothingDue, fixes[NothingDue]
		return m, now, r
	}
	m.Held -= now.Due
	m.Issued++
	now.Due = 0
	return m, now, r
}
