package totals

import (
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
)

// An audit counts for the account that was paid for the unit, or that its dispute convicted.
func TestAudited(t *testing.T) {
	work := func(who string, round int, amount uint64) api.Receipt {
		return api.Receipt{Kind: "work", Who: who, Round: round, Amount: amount}
	}
	h := &source.History{Disputes: []api.Dispute{{Worker: "bob", Challenger: "vic"}}, Receipts: []api.Receipt{
		work("bob", 1, 0), work("ann", 1, 5), work("ann", 2, 5), work("cas", 3, 5),
		{Kind: "audit", Who: "vic", Round: 1, Reason: "fault_found", Dispute: sourcetest.Ptr(0)},
		{Kind: "audit", Who: "vic", Round: 1, Reason: "verified"},
		{Kind: "audit", Who: "vic", Round: 2, Reason: "verified"},
		{Kind: "audit", Who: "wim", Round: 3, Reason: "verified", Dispute: sourcetest.Ptr(7)},
		{Kind: "audit", Who: "vic", Round: 9, Reason: "verified"},
	}}
	want := []api.Audited{{Verifier: "vic", Worker: "bob", Audits: 1, Failed: 1},
		{Verifier: "vic", Worker: "ann", Audits: 2}, {Verifier: "wim", Worker: "cas", Audits: 1}}
	got := Audited(h)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// A unit that its worker did not do is none of its units.
func TestMissedUnitsAreNotDone(t *testing.T) {
	h := &source.History{}
	for i, reason := range []string{reward.Verified, reward.TooSmall, reward.BudgetExhausted, "commitment_missed"} {
		h.Receipts = append(h.Receipts, api.Receipt{Seq: uint64(i), Who: "ann", Kind: "work", Reason: reason})
	}
	if m := Members(h); len(m) != 1 || m[0].Units != 3 {
		t.Errorf("%+v", m)
	}
}

// The sum of a member has the amounts in the coin of the job, and leaves out those in ZEN.
func TestReceivedIsInTheCoinOfTheJob(t *testing.T) {
	dai := &api.Coin{Denom: "ibc/A", Symbol: "dai", Decimals: 18}
	h := &source.History{Job: api.Job{Coin: dai}, Receipts: []api.Receipt{{Who: "ann", Kind: "work", Amount: 7, Coin: dai},
		{Who: "ann", Kind: "bounty", Amount: 500}, {Who: "ann", Kind: "slash", Amount: 3}}}
	if m := Members(h); len(m) != 1 || m[0].Uzen != 7 || m[0].Coin != dai || m[0].SlashedUzen != 3 {
		t.Errorf("%+v", m)
	}
}

// A member that signed checkpoints and has no receipt, such as a verifier for which no audit was drawn, has its role.
func TestRoleWithoutReceipts(t *testing.T) {
	h := &source.History{Lineage: []api.Checkpoint{{Signers: []api.Signer{{ID: "vic"}}}},
		Roles: map[string]string{"vic": "verifier"}}
	if m := Members(h); len(m) != 1 || m[0].Role != "verifier" || m[0].Signed != 1 {
		t.Errorf("%+v", m)
	}
}

// A stage has the bytes that its steps exchanged in all replicas, and the members that were paid for its units.
func TestStages(t *testing.T) {
	work := func(who string, unit uint32, amount uint64) api.Receipt {
		return api.Receipt{Kind: "work", Who: who, Unit: unit, Amount: amount}
	}
	h := &source.History{Receipts: []api.Receipt{work("ann", 0, 5), work("bob", 3, 5), work("bob", 2, 5),
		work("cas", 1, 0), work("bob", 0, 5), {Kind: "audit", Who: "vic", Amount: 5}}}
	if got := Stages(h); got != nil {
		t.Errorf("a model that is not cut has stages %+v", got)
	}
	h.Job.Step = 10
	h.Pipeline = &api.Pipeline{Replicas: 2, Stages: []api.Stage{
		{Layers: "embeddings", SentBytes: 7, ReceivedBytes: 3, Busy: 0.5},
		{Layers: "output", SentBytes: 3, ReceivedBytes: 7, Late: 1}}}
	got := Stages(h)
	if len(got) != 2 || got[0].SentBytes != 140 || got[0].ReceivedBytes != 60 || got[1].SentBytes != 60 ||
		got[0].Busy != 0.5 || got[1].Late != 1 || h.Pipeline.Stages[0].SentBytes != 7 {
		t.Errorf("%+v", got)
	}
	a, b := got[0].Holders, got[1].Holders
	if len(a) != 2 || a[0] != (api.Holder{ID: "bob", Units: 2}) || a[1].ID != "ann" || len(b) != 1 ||
		b[0] != (api.Holder{ID: "bob", Units: 1}) {
		t.Errorf("%+v and %+v", a, b)
	}
}
