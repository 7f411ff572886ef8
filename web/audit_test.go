package web

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/reward"
)

// Audits add up, whatever they ended with: those of a run, of its members, and of its rounds.
func TestAuditsAddUp(t *testing.T) {
	h := example(2)
	for i, reason := range []string{reward.Verified, reward.TooSmall, reward.BudgetExhausted, reward.FaultFound,
		reward.NothingShown, reward.FoundOutside, reward.AuditMoot, reward.AuditMoot, reward.AuditMoot, reward.RunHalted,
		reward.AuditMissed, reward.VerifierLeft, reward.FalseChallenge, reward.SealUnopened, reward.PlantPassed,
		"of_tomorrow"} {
		h.Receipts = append(h.Receipts, api.Receipt{Seq: uint64(2000 + i), Round: 2, Who: "vic", Role: "verifier",
			Kind: "audit", Reason: reason})
	}
	var all api.AuditCounts
	for _, m := range Members(h) {
		AddAudits(&all, m.Audits)
	}
	if want := (api.AuditCounts{Drawn: 18, Passed: 5, Failed: 3, Moot: 5, Missed: 5}); all != want ||
		all.Drawn != all.Passed+all.Failed+all.Moot+all.Missed {
		t.Errorf("%+v, want %+v", all, want)
	}
	if want := "18 drawn: 5 the same bits, 3 a fault found, 5 moot, 5 not answered"; all.String() != want {
		t.Errorf("%v", all)
	}
	sum := 0.0
	for _, s := range series(h, []string{"audits_passed", "audits_failed", "audits_moot", "audits_missed"}, 10, 0,
		1e9).Series {
		sum += s.Value[1]
	}
	if sum != 17 {
		t.Errorf("%v audits in round 2", sum)
	}
}

// The cost of rounds is that of their receipts, and ends with the cost of the run; where a run has no receipts, it is
// what its metrics say.
func TestCostIsWhatIsCharged(t *testing.T) {
	h := example(3)
	for i := range h.Receipts {
		if h.Receipts[i].Kind == "audit" {
			h.Receipts[i].Fee = 1
		}
	}
	// from her stake
	h.Receipts = append(h.Receipts, api.Receipt{Round: 2, Who: "bob", Kind: "work", Amount: 500, Payer: "liz"})
	paid, fee := Spent(h.Receipts)
	if paid != 21 || fee != 3 {
		t.Errorf("paid %d and %d", paid, fee)
	}
	m := series(h, []string{"cost"}, 10, 0, 1e9)
	if want := []float64{8e-6, 16e-6, 24e-6}; len(m.Series) != 1 || !slices.Equal(m.Series[0].Value, want) ||
		!slices.Equal(m.Axis.Uzen, []float64{0, 8, 16, 24}) {
		t.Errorf("%+v", m)
	}
	h.Receipts = nil
	if m = series(h, []string{"cost"}, 10, 0, 1e9); len(m.Series) != 1 || m.Series[0].Value[2] != 15e-6 ||
		m.Axis.Uzen[3] != 15 {
		t.Errorf("%+v", m)
	}
}

// Blocks with transactions are asked for by themselves: a page of them may be empty, and not the last.
func TestBusyBlocks(t *testing.T) {
	s := server(t, Config{Network: village{}})
	if code, _, text := get(t, s, "/v1/blocks?busy=true"); code != 200 ||
		text != `{"blocks":[],"has_more":true,"after":"NQ"}`+"\n" {
		t.Errorf("%d %s", code, text)
	}
}

// Blocks implements Network.
func (village) Blocks(_ context.Context, _ int64, _ int, busy bool) (list []api.Block, next int64, err error) {
	if !busy {
		list = []api.Block{{Height: 9, Time: time.Unix(2000, 0).UTC(),
			Txs: []api.Tx{{Messages: []string{}, Signers: []string{}, Transfers: []api.Transfer{}}}}}
	}
	return list, 5, nil
}

// A unit that its worker did not do is none of its units.
func TestMissedUnitsAreNotDone(t *testing.T) {
	h := &History{}
	for i, reason := range []string{reward.Verified, reward.TooSmall, reward.BudgetExhausted, "commitment_missed"} {
		h.Receipts = append(h.Receipts, api.Receipt{Seq: uint64(i), Who: "ann", Kind: "work", Reason: reason})
	}
	if m := Members(h); len(m) != 1 || m[0].Units != 3 {
		t.Errorf("%+v", m)
	}
}
