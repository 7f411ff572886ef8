package totals

import (
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/web/source"
)

// Members are those who took part in a run, as its receipts and signatures tell: in the order in which they first
// appear.
func Members(h *source.History) []api.Member {
	list, index := []api.Member{}, map[string]int{}
	member := func(id string) *api.Member {
		i, ok := index[id]
		if !ok {
			i = len(list)
			index[id] = i
			list = append(list, api.Member{ID: id, Role: h.Roles[id], Zeros: []string{}, Coin: h.Job.Coin})
		}
		return &list[i]
	}
	for _, c := range h.Lineage {
		for _, signer := range c.Signers {
			member(signer.ID).Signed++
		}
	}
	for _, x := range h.Receipts {
		m := member(x.Who)
		if m.Role == "" {
			m.Role = roleOf(x)
		}
		if x.Kind == "slash" {
			if x.Coin == nil {
				m.SlashedUzen += x.Amount
			}
			continue
		}
		if (x.Coin == nil) == (h.Job.Coin == nil) { // a bounty of a stake in ZEN may be paid for a job in another coin
			m.Uzen += x.Amount
		}
		switch {
		case x.Amount > 0:
			m.Paid++
		default:
			m.Zero++
			if !slices.Contains(m.Zeros, x.Why) {
				m.Zeros = append(m.Zeros, x.Why)
			}
		}
		switch done := []string{reward.Verified, reward.TooSmall, reward.BudgetExhausted}; {
		case x.Kind == "work" && slices.Contains(done, x.Reason):
			m.Units++
		case x.Kind == "audit":
			CountAudit(&m.Audits, x.Reason)
		}
	}
	return list
}

// Audited are the audits of a run, as its receipts show, by verifier and worker. If several workers computed a unit,
// its worker is the one that was paid for it, or the subject of the dispute about the audit.
func Audited(h *source.History) []api.Audited {
	type unit struct {
		round int
		unit  uint32
	}
	type pair struct{ verifier, worker string }
	by, list, index := map[unit]string{}, []api.Audited{}, map[pair]int{}
	for _, x := range h.Receipts {
		if at := (unit{x.Round, x.Unit}); x.Kind == "work" && (by[at] == "" || x.Amount > 0) {
			by[at] = x.Who
		}
	}
	for _, x := range h.Receipts {
		if x.Kind != "audit" {
			continue
		}
		p := pair{x.Who, by[unit{x.Round, x.Unit}]}
		if n := x.Dispute; n != nil && *n >= 0 && *n < len(h.Disputes) {
			p.worker = h.Disputes[*n].Worker
		}
		if p.worker == "" {
			continue
		}
		i, ok := index[p]
		if !ok {
			i = len(list)
			index[p] = i
			list = append(list, api.Audited{Verifier: p.verifier, Worker: p.worker})
		}
		list[i].Audits++
		if reward.AuditOutcome(x.Reason) == reward.Found {
			list[i].Failed++
		}
	}
	return list
}

func roleOf(x api.Receipt) string {
	switch {
	case x.Role != "":
		return x.Role
	case x.Kind == "refund":
		return "consumer"
	}
	return "pool"
}
