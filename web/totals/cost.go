package totals

import (
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/source"
)

// spends reports whether a receipt takes of the budget of its job: what was paid for work and audits, the fee on top.
func spends(r api.Receipt) bool { return (r.Kind == "work" || r.Kind == "audit") && r.Payer == "" }

// Spent is what receipts took of the budget of their job.
func Spent(receipts []api.Receipt) (paid, fee uint64) {
	for _, r := range receipts {
		if spends(r) {
			paid, fee = paid+r.Amount, fee+r.Fee
		}
	}
	return paid, fee
}

// Spending returns what a run had cost, in grains of its coin, when a metric was recorded: by its receipts, which come
// when a round is final, so that the last value is the whole cost; in a run without receipts, what the metric says was
// paid.
func Spending(h *source.History) func(m api.Metric) (grains uint64, known bool) {
	of, last := map[int]uint64{}, 0
	for _, r := range h.Receipts {
		if spends(r) {
			of[r.Round] += r.Amount + r.Fee
			last = max(last, r.Round)
		}
	}
	if last == 0 {
		return func(m api.Metric) (uint64, bool) { return m.PaidUzen, m.PaidUzen > 0 }
	}
	for round := 1; round <= last; round++ {
		of[round] += of[round-1]
	}
	return func(m api.Metric) (uint64, bool) {
		round := int(m.Round)
		return of[min(round, last)], round > 0 && round <= last
	}
}
