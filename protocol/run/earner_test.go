package run

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// earning lets members of a run earn their stake.
func (g *stage) earning(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		i, ok := g.s.Index(id)
		if !ok {
			g.t.Fatalf("no %s", id)
		}
		g.s.Members[i].Earning = true
	}
}

// Every unit of a worker that earns its stake is audited, and whole, however many audits it has passed and however few
// the job asks for.
func TestEveryUnitOfAnEarnerIsAudited(t *testing.T) {
	rare := drawn()
	rare.AuditPPM = 1
	members := newMembers(4, 2)
	for i := range members {
		members[i].Passed = 1000
	}
	g := begin(t, rare, members)
	g.earning("w0")
	g.toAudits()
	of, others := 0, 0
	for _, u := range g.s.Units {
		switch {
		case u.Worker != "w0":
			if u.Status == work.Auditing {
				others++
			}
		case u.Status != work.Auditing || u.Segment != 0:
			t.Errorf("unit %d: %+v", u.Index, u)
		default:
			of++
		}
	}
	if of == 0 || others > 4 {
		t.Errorf("%d units of it are audited, and %d of others", of, others)
	}
}

// Accounts that earn their stake have no vote before they have earned something: neither with others, nor alone.
func TestEarnersWithoutStakeAttestNothing(t *testing.T) {
	g := staked(t, crew.Member{ID: "a", Role: crew.Worker, Stake: 5}, crew.Member{ID: "b", Role: crew.Worker},
		crew.Member{ID: "c", Role: crew.Worker}, crew.Member{ID: "v", Role: crew.Verifier, Stake: 5})
	g.earning("b", "c")
	if heads(g.s) != 10 {
		t.Errorf("all weigh %d", heads(g.s))
	}
	g.vote("b", "bafyforged")
	g.vote("c", "bafyforged")
	g.phase(progress.Attest)
	for i := range g.s.Members {
		if m := &g.s.Members[i]; !m.Earning {
			m.Active = false
		}
	}
	if g.s.Quorate(map[string]bool{"b": true, "c": true}) || g.s.MostSay("a", []string{"b", "c"}) {
		t.Error("two accounts that staked nothing decide alone")
	}
}

// Slices are reduced by members with a stake.
func TestEarnersReduceNothing(t *testing.T) {
	g := begin(t, sliced(8), newMembers(4, 2))
	g.earning("w0", "w1")
	g.toAudits()
	for _, x := range g.s.Slices {
		if x.ReducerOf("w0") >= 0 || x.ReducerOf("w1") >= 0 || len(x.Reducers) == 0 {
			t.Errorf("%+v", x.Reducers)
		}
	}
}
