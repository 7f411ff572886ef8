package web

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
)

// What is wrong with a network, or with this machine beside it, is a check of its own, with what was seen.
func TestNetworkChecks(t *testing.T) {
	now := time.Unix(2000, 0)
	good := func() api.Network {
		return api.Network{Time: now.Add(-2 * time.Second), Peers: 2,
			Validators: []api.Validator{{Power: 1, Signed: true}, {Power: 1, Signed: true}, {Power: 1, Signed: true},
				{Power: 1}}}
	}
	for name, c := range map[string]struct {
		spoil func(n *api.Network)
		bad   string // name of the check that fails
		says  string
	}{
		"all is well":  {func(*api.Network) {}, "", ""},
		"no blocks":    {func(n *api.Network) { n.Time = now.Add(-2 * time.Minute) }, "network", "older than a minute"},
		"behind":       {func(n *api.Network) { n.CatchingUp = true }, "network", "behind the others"},
		"alone":        {func(n *api.Network) { n.Peers, n.Validators = 0, n.Validators[:1] }, "", ""},
		"no peers":     {func(n *api.Network) { n.Peers = 0 }, "peers", "0 others"},
		"few votes":    {func(n *api.Network) { n.Validators[0].Signed = false }, "votes", "2 of 4"},
		"a slow clock": {func(n *api.Network) { n.Time = now.Add(time.Minute) }, "clock", "1m0s behind"},
	} {
		n := good()
		c.spoil(&n)
		for _, check := range NetworkChecks(n, now) {
			if check.OK == (check.Name == c.bad) || check.Name == c.bad && !strings.Contains(check.Text, c.says) {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}

func TestRoomCheck(t *testing.T) {
	for text, room := range map[string]func() (int64, bool){
		`{"name":"disk","ok":false,"text":"0.5 GB`:     func() (int64, bool) { return 5e8, true },
		`{"name":"disk","ok":true,"text":"50.0 GB`:     func() (int64, bool) { return 5e10, true },
		`{"name":"disk","ok":true,"text":"how much is`: func() (int64, bool) { return 0, false },
	} {
		if _, _, body := get(t, server(t, Config{Room: room}), "/v1/health"); !strings.Contains(body, text) {
			t.Errorf("no %s in %s", text, body)
		}
	}
}

// An audit is of the work of who was paid for the unit, or of whom the dispute convicted that came of it.
func TestAudited(t *testing.T) {
	work := func(who string, round int, amount uint64) api.Receipt {
		return api.Receipt{Kind: "work", Who: who, Round: round, Amount: amount}
	}
	h := &History{Disputes: []api.Dispute{{Worker: "bob", Challenger: "vic"}}, Receipts: []api.Receipt{
		work("bob", 1, 0), work("ann", 1, 5), work("ann", 2, 5), work("cas", 3, 5),
		{Kind: "audit", Who: "vic", Round: 1, Reason: "fault_found", Dispute: ptr(0)},
		{Kind: "audit", Who: "vic", Round: 1, Reason: "verified"},
		{Kind: "audit", Who: "vic", Round: 2, Reason: "verified"},
		{Kind: "audit", Who: "wim", Round: 3, Reason: "verified", Dispute: ptr(7)},
		{Kind: "audit", Who: "vic", Round: 9, Reason: "verified"},
	}}
	want := []api.Audited{{Verifier: "vic", Worker: "bob", Audits: 1, Failed: 1},
		{Verifier: "vic", Worker: "ann", Audits: 2}, {Verifier: "wim", Worker: "cas", Audits: 1}}
	got := audited(h)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}
