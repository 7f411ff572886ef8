package run

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// overlapping are terms of five rounds, of which the first three and the last two overlap.
func overlapping() terms.Terms {
	t := carrying()
	t.Carry, t.Window, t.Overlap, t.Deadlines.Challenge = 3, 4, true, 20
	return t
}

// deal brings a round to where its units are dealt.
func (g *stage) deal(round uint32) {
	g.t.Helper()
	for range 40 {
		if g.s.Round == round && g.s.Phase == progress.Train {
			return
		}
		g.tick(1)
	}
	g.t.Fatalf("round %d, phase %d, wanted round %d dealt", g.s.Round, g.s.Phase, round)
}

// A round ends when its units are committed and the checkpoint after it is attested, in either order. The checkpoint
// is made of the updates of the round before; the last round of a group waits for its own updates, too.
func TestUpdatesTravelDuringTheNextRound(t *testing.T) {
	for name, first := range map[string]func(*stage){"attested first": (*stage).attestAll,
		"committed first": (*stage).commitAll} {
		g := begin(t, overlapping(), newMembers(4, 2))
		for round, sent := range [][]uint32{nil, {0}, {1, 2}, nil, {3, 4}} {
			r, last := uint32(round), len(sent) == 2
			g.deal(r)
			if g.s.Combines() == last {
				t.Fatalf("%s: round %d combines while it trains: %v", name, r, !last)
			}
			if last {
				if err := g.do(func(s State) (State, []event.Event, error) {
					return s.Attest(g.env(), r,
						vote(s, "w0"))
				}); !errors.Is(err, refusal.ErrWrongPhase) {
					t.Fatalf("%s: round %d is attested before its commitments: %v", name, r, err)
				}
			}
			first(g)
			if g.s.Round != r {
				t.Fatalf("%s: round %d ends", name, r)
			}
			g.commitAll()
			var want []string
			for _, of := range sent {
				for _, u := range g.lap(of).Units {
					want = append(want, u.Commit.UpdateCID)
				}
			}
			g.attestAll()
			if g.s.Round != r+1 {
				t.Fatalf("%s: round %d does not end, phase %d", name, r, g.s.Phase)
			}
			entry := g.events[slices.IndexFunc(g.events,
				func(e event.Event) bool { return e.Kind == event.RoundAttested && e.Round == r })].Entry
			if !slices.Equal(entry.Attestation.Updates, want) || len(entry.Votes) < 5 {
				t.Errorf("%s: the checkpoint after round %d has %v, want those of %v; %d votes", name, r,
					entry.Attestation.Updates, sent, len(entry.Votes))
			}
			if len(g.s.From) == 0 != last {
				t.Errorf("%s: round %d starts from %v", name, g.s.Round, g.s.From)
			}
			if final := g.count(event.RoundFinal); final%3 != 0 {
				t.Errorf("%s: %d rounds are final", name, final)
			}
			g.passAll()
		}
		g.tick(40)
		g.passAll()
		g.tick(40)
		if g.s.Phase != progress.Done || g.count(event.RoundFinal) != 5 {
			t.Errorf("%s: phase %d, %d rounds are final", name, g.s.Phase, g.count(event.RoundFinal))
		}
	}
}

// begun is a run in the second of rounds that overlap, in which one unit is committed.
func begun(t *testing.T) *stage {
	g := begin(t, overlapping(), newMembers(4, 2))
	g.deal(0)
	g.attestAll()
	g.commitAll()
	g.deal(1)
	g.tick(1) // the audits of round 0 are drawn
	g.commit(1)
	return g
}

// A lie in the round before is done again, and so are the units that started from its state.
func TestVerdictUnderTheNextRound(t *testing.T) {
	g := begun(t)
	g.attestAll()
	first := g.s.FirstAttempt
	g.challenge("v1", 0, 0)
	liar, _ := g.verdict(0, 0, true)
	if g.s.Round != 0 || g.s.Phase != progress.Train || len(g.s.Votes) != 0 || g.s.FirstAttempt <= first ||
		len(g.s.RolledBack) != 1 {
		t.Fatalf("round %d, phase %d, %d votes, attempts from %d, %d rounds kept", g.s.Round, g.s.Phase, len(g.s.Votes),
			g.s.FirstAttempt, len(g.s.RolledBack))
	}
	g.commitAll()
	g.attestAll()
	g.deal(1)
	if u := g.unit(0, 0); u.Worker == liar || g.s.From[0] != u.Commit.HandedState || len(g.s.Sent()) != 4 {
		t.Errorf("goes on from %v, of %+v", g.s.From, u)
	}
	g.attestAll()
	g.commitAll()
	if g.s.Round != 2 {
		t.Errorf("round %d, phase %d", g.s.Round, g.s.Phase)
	}
}

// An update of the round before that most cannot fetch takes the run back to it: it is done again, when its audit is
// over.
func TestUnavailableUpdateUnderTheNextRound(t *testing.T) {
	g := begun(t)
	g.passAll()
	gone := g.unit(0, 2).Worker
	report := func(from string, round uint32) error {
		return g.do(func(s State) (State, []event.Event, error) {
			return s.Missing(g.env(), from, work.UnitID{Round: round, Unit: 2, Attempt: g.unit(round, 2).Attempt}, 0)
		})
	}
	if err := report("v0", 1); !errors.Is(err, refusal.ErrStale) {
		t.Errorf("missing an update that nobody is to have yet: %v", err)
	}
	n := 0
	for _, m := range g.s.Members {
		if m.ID == gone {
			continue
		}
		if g.s.Round != 1 {
			break
		}
		if err := report(m.ID, 0); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if u := g.s.Units[2]; g.s.Round != 0 || n != 3 || u.Status != work.Assigned || u.Worker == gone ||
		g.count(event.RolledBack) != 1 {
		t.Fatalf("after %d reports round %d, %+v", n, g.s.Round, u)
	}
	if m, _ := g.s.Member(gone); m.Missed == 0 {
		t.Error("its worker has missed nothing")
	}
	g.commitAll()
	g.attestAll()
	g.deal(1)
	if len(g.lap(0).Units[2].Missing) != 0 {
		t.Error("the new update is missing already")
	}
}

// While a unit that says that it diverged may still be wrong, the updates of the round before are not forgotten.
func TestFalseDivergenceUnderOverlap(t *testing.T) {
	g := begun(t)
	g.passAll()
	liar := g.s.Units[0]
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), liar.Worker, work.UnitID{Round: 1, Attempt: liar.Attempt}, divergent(s.RoundState, 0))
	})
	g.commitAll()
	g.attestAll()
	if g.s.Round != 1 {
		t.Fatal("a round ends of which a unit diverged")
	}
	for range 30 {
		g.tick(1)
		for _, i := range []uint32{1, 2, 3} {
			if u := g.unit(1, i); u.Status == work.Auditing {
				g.pass(u.Verifier, 1, i)
			}
		}
	}
	if len(g.s.Sent()) != 4 {
		t.Fatalf("of the updates of the round before %d are known", len(g.s.Sent()))
	}
	g.challenge("v0", 1, 0)
	g.verdict(1, 0, true)
	g.commitAll()
	g.attestAll()
	if g.s.Round != 2 {
		t.Errorf("round %d, phase %d", g.s.Round, g.s.Phase)
	}
}

// Rounds overlap where units hand something on, and updates are whole.
func TestTermsOfOverlap(t *testing.T) {
	alone, sliced := long(), overlapping()
	alone.Overlap, sliced.Slices = true, 2
	for _, bad := range []terms.Terms{alone, sliced} {
		if bad.Validate() == nil {
			t.Errorf("taken: %+v", bad)
		}
	}
	if err := overlapping().Validate(); err != nil {
		t.Error(err)
	}
	plain := canon.MustMarshal(carrying())
	with := carrying()
	with.Overlap = true
	if len(canon.MustMarshal(with)) <= len(plain) {
		t.Error("the flag is not in the bytes")
	}
}
