package run

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// divergent is the commitment to a unit of which no update can be made.
func divergent(l work.RoundState, unit uint32) work.Commitment {
	c := commitment(l, unit)
	c.Update, c.UpdateCID, c.Bytes = canon.Digest{}, "", 0
	return c
}

func (g *stage) commitDivergent(unit uint32) {
	g.t.Helper()
	u := g.s.Units[unit]
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(
			g.env(),
			u.Worker,
			work.UnitID{Unit: unit, Round: s.Round, Attempt: u.Attempt},
			divergent(s.RoundState, unit),
		)
	})
}

// A unit that diverged is audited for certain, holds the attestation up, and ends the run when the time for challenges
// is over.
func TestDiverged(t *testing.T) {
	rare := long()
	rare.AuditPPM = 1
	g := begin(t, rare, newMembers(3, 2))
	for i := range g.s.Members {
		g.s.Members[i].Passed = 30
	}
	g.round()
	g.tick(1)
	g.commitDivergent(1)
	g.commitAll()
	g.tick(2)
	if u := g.s.Units[1]; u.Status != work.Auditing || g.s.Attestable() {
		t.Fatalf("attestable: %v; %+v", g.s.Attestable(), u)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Attest(g.env(), s.Round,
			vote(s, "w0"))
	}); codeOf(err) != "wrong_phase" {
		t.Errorf("attested: %v", err)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Missing(g.env(), "v0", work.UnitID{Round: s.Round, Unit: 1}, 0)
	}); codeOf(err) != "wrong_phase" {
		t.Errorf("missing: %v", err)
	}
	g.passAll()
	g.phase(progress.Attest) // it may be challenged
	for g.s.Phase == progress.Attest && g.height < 200 {
		g.tick(1)
	}
	if g.phase(progress.Halted); g.s.Why != reason.Diverged || g.count(event.RoundFinal) != 1 ||
		g.height < g.s.Closed+rare.Deadlines.Challenge {
		t.Errorf("%s at height %d, closed at %d", g.s.Why, g.height, g.s.Closed)
	}
}

// A worker that falsely claims divergence is convicted, and the run continues.
func TestFalseClaimOfDivergence(t *testing.T) {
	g := begin(t, long(), newMembers(3, 2))
	g.tick(1)
	g.commitDivergent(1)
	g.commitAll()
	g.tick(2)
	g.dispute(1, true)
	g.finish()
}

func TestDivergenceIsNoHalfCommitment(t *testing.T) {
	for name, spoil := range map[string]func(c *work.Commitment){
		"a CID":   func(c *work.Commitment) { c.UpdateCID = "bafy" },
		"bytes":   func(c *work.Commitment) { c.Bytes = 1 },
		"no root": func(c *work.Commitment) { c.Segments = c.Segments[1:] },
	} {
		g := begin(t, long(), newMembers(3, 2))
		g.tick(1)
		u, c := g.s.Units[0], divergent(g.s.RoundState, 0)
		spoil(&c)
		if err := g.do(func(s State) (State, []event.Event, error) {
			return s.Commit(g.env(), u.Worker, work.UnitID{}, c)
		}); codeOf(err) != "bad_commitment" {
			t.Errorf("with %s: %v", name, err)
		}
	}
}
