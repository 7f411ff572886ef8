package run

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// long is a job of five rounds that audits everything.
func long() terms.Terms {
	t := newTerms()
	t.Rounds, t.Window, t.Deadlines.Challenge = 5, 4, 50
	return t
}

// finish plays the rest of a run with honest members.
func (g *stage) finish() {
	g.t.Helper()
	for i := 0; i < 500 && !g.s.Over(); i++ {
		g.tick(1)
		g.commitAll()
		g.passAll()
		g.attestAll()
	}
	g.phase(progress.Done)
}

// A lie that is found two rounds later: the run goes back to its round, keeps the commitments of the others, and ends
// where a run without the liar ends.
func TestRollback(t *testing.T) {
	honest := begin(t, long(), newMembers(3, 2))
	honest.finish()

	g := begin(t, long(), newMembers(4, 2))
	g.round()
	g.tick(1)
	lied := g.s.Units[2]
	wrong := commitment(g.s.RoundState, 2)
	wrong.Update[0]++
	wrong.UpdateCID = "bafywrong"
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), lied.Worker, work.UnitID{Unit: 2, Round: 1}, wrong)
	})
	g.commitAll()
	g.tick(2)
	g.attestAll()
	g.round() // on a checkpoint that holds the lie
	g.toAudits()
	poisoned := g.s.Base
	base, _ := g.s.At(1)
	g.challenge(base.Units[2].Verifier, 1, 2)
	g.verdict(1, 2, true)

	if g.s.Round != 1 || g.s.Base != base.Base || g.s.Phase != progress.Train || len(g.s.Open) != 1 || len(g.s.Votes) > 0 {
		t.Fatalf("after the verdict: phase %d of round %d with %d open", g.s.Phase, g.s.Round, len(g.s.Open))
	}
	for i, u := range g.s.Units {
		switch {
		case base.Units[i].Worker == lied.Worker:
			if u.Status != work.Assigned || u.Worker == lied.Worker || !u.Audited {
				t.Errorf("a unit of the liar: %+v", u)
			}
		case u.Commit.Update != base.Units[i].Commit.Update || u.Attempt != 0:
			t.Errorf("a unit of the others is not kept: %+v", u)
		}
	}
	if len(g.s.RolledBack) != 2 || g.count(event.RolledBack) != 1 || g.count(event.RoundDropped) != 0 {
		t.Errorf("%d rounds are void after %d rollbacks, %d closed", len(g.s.RolledBack), g.count(event.RolledBack),
			g.count(event.RoundDropped))
	}
	g.finish()
	var dropped []uint32
	for _, e := range g.events {
		if e.Kind != event.RoundDropped {
			continue
		}
		dropped = append(dropped, e.Round)
		for _, u := range e.RoundState.Units {
			if u.Status != work.Accepted || u.Worker != lied.Worker && !u.Passed {
				t.Errorf("an unfinished audit of a round that is closed: %+v", u)
			}
		}
	}
	if !slices.Equal(dropped, []uint32{2, 3}) || len(g.s.RolledBack) > 0 {
		t.Errorf("rounds %v dropped, %d left", dropped, len(g.s.RolledBack))
	}
	if g.s.Base != honest.s.Base {
		t.Errorf("the run ends at %v, without the liar at %v", g.s.Base, honest.s.Base)
	}
	back := slices.IndexFunc(g.events, func(e event.Event) bool { return e.Kind == event.RolledBack })
	for _, e := range g.events[back:] {
		if e.Kind == event.RoundAttested && e.Entry.Attestation.Checkpoint == poisoned {
			t.Error("the poisoned checkpoint is attested again")
		}
	}
}

// A message about a round as it was before it was rolled back does not touch the round as it is done over.
func TestMessagesOfDroppedRoundsAreStale(t *testing.T) {
	g := begin(t, long(), newMembers(4, 2))
	g.tick(1)
	wrong := commitment(g.s.RoundState, 0)
	wrong.Update[0]++
	wrong.UpdateCID = "bafywrong"
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), s.Units[0].Worker, work.UnitID{}, wrong)
	})
	g.commitAll()
	g.tick(2)
	g.attestAll()
	g.toAudits()
	was := g.s.Units[1]
	g.challenge("v0", 0, 0)
	g.verdict(0, 0, true)
	g.commitAll()
	g.tick(2)
	g.attestAll()
	g.tick(1)
	now := g.s.Units[1]
	if now.Attempt <= was.Attempt {
		t.Fatalf("attempt %d of unit 1 of round 1, before the rollback %d", now.Attempt, was.Attempt)
	}
	for name, f := range map[string]func(s State) (State, []event.Event, error){
		"commit": func(s State) (State, []event.Event, error) {
			return s.Commit(g.env(), now.Worker, work.UnitID{Unit: 1, Round: 1, Attempt: was.Attempt}, was.Commit)
		},
		"missing": func(s State) (State, []event.Event, error) {
			return s.Missing(g.env(), "v0", work.UnitID{Round: 1, Unit: 1, Attempt: was.Attempt}, 0)
		},
		"suspect": func(s State) (State, []event.Event, error) {
			return s.Suspect(g.env(), "v0", work.UnitID{Round: 1, Unit: 1, Attempt: was.Attempt})
		},
		"pass of no attempt": func(s State) (State, []event.Event, error) {
			return s.Pass(g.env(), was.Verifier, work.UnitID{Round: 1, Unit: 1, Attempt: now.Attempt + 1}, was.Commit.Update)
		},
	} {
		if err := g.do(f); codeOf(err) != "stale" {
			t.Errorf("%s: %v", name, err)
		}
	}
	current := canon.MustMarshal(g.s.RoundState)
	g.must(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), was.Verifier, work.UnitID{Round: 1, Unit: 1, Attempt: was.Attempt})
	})
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), work.UnitID{Round: 1, Unit: 1, Attempt: was.Attempt}, false, false, was.Verifier)
	})
	if !slices.Equal(canon.MustMarshal(g.s.RoundState), current) {
		t.Error("a dispute about a round that was rolled back changes the one that replaces it")
	}
}

// A lie in a round that was rolled back convicts once, and does not roll the run back again. Units of the current
// round that the convicted worker had not committed go to another.
func TestLieInADroppedRound(t *testing.T) {
	g := begin(t, long(), newMembers(4, 3))
	g.round()
	g.toAudits()
	was, first := g.s.RoundState, g.s.Open[0].Units[0].Worker
	g.challenge("v0", 0, 0)
	g.verdict(0, 0, true)
	works := func(id string) bool {
		return slices.ContainsFunc(g.s.Units, func(u *work.Unit) bool { return u.Worker == id && u.Status == work.Assigned })
	}
	i := slices.IndexFunc(was.Units, func(u *work.Unit) bool { return u.Worker != first && works(u.Worker) })
	if i < 0 {
		t.Fatal("nobody has a unit in both rounds")
	}
	second := was.Units[i]
	round, base := g.s.Round, g.s.Base
	g.must(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), "v1", second.ID(was.Round))
	})
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), second.ID(was.Round), true, false, second.Worker)
	})
	if m, _ := g.s.Member(second.Worker); m.Why != reason.Verdict || g.count(event.RolledBack) != 1 ||
		g.s.Round != round ||
		g.s.Base != base {
		t.Errorf("after %d rollbacks in round %d: %+v", g.count(event.RolledBack), g.s.Round, m)
	}
	for _, u := range g.s.Units {
		if u.Worker == second.Worker && u.Status == work.Assigned || u.Status != work.Assigned && u.Commit.Update.IsZero() {
			t.Errorf("nobody was to do this unit: %+v", u)
		}
	}
	if d, ok := g.s.Find(second.ID(was.Round)); !ok || !g.s.Forfeited(d) || d.Status != work.Accepted {
		t.Fatalf("a unit of a convicted worker in a round that is not closed: %+v", d)
	}
	again := func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), "v2", second.ID(was.Round))
	}
	if err := g.do(again); codeOf(err) != "stale" {
		t.Errorf("a unit that a verdict found wrong can be challenged again: %v", err)
	}
	g.finish()
}

// Disputes about one unit are played in the order of the challenges. The first that convicts makes the others moot,
// and one that the challenger loses does not protect the unit from the next.
func TestSeveralChallengers(t *testing.T) {
	for name, rightful := range map[string]int{"first": 0, "second": 1, "nobody": 3} {
		t.Run(name, func(t *testing.T) {
			g := begin(t, long(), newMembers(3, 4))
			g.toAudits()
			drawn := g.s.Units[0].Verifier
			var challengers []string
			for _, v := range g.s.Active(crew.Verifier) {
				if v != drawn {
					challengers = append(challengers, v)
					g.challenge(v, 0, 0)
				}
			}
			if g.count(event.UnitChallenged) != 3 || g.count(event.AuditMissed) != 1 {
				t.Fatalf("%d challenges, %d audits ended by them", g.count(event.UnitChallenged), g.count(event.AuditMissed))
			}
			for i, v := range challengers {
				d, ok := g.s.Playing(work.UnitID{}, v)
				if !ok || d.Unit.Index != 0 || len(d.Challengers) != 3-i {
					t.Fatalf("dispute %d is not being played", i)
				}
				if i == rightful {
					g.verdict(0, 0, true)
					break
				}
				g.verdict(0, 0, false)
				if m, _ := g.s.Member(v); m.Why != reason.FalseChallenge {
					t.Errorf("a challenger who lost: %+v", m)
				}
			}
			if rightful == 3 {
				if u := g.s.Units[0]; u.Status != work.Auditing || u.Verifier != drawn {
					t.Errorf("the audit that the challenges ended is not drawn again: %+v", u)
				}
				return
			}
			moot := 0
			for _, e := range g.events {
				if e.Kind == event.AuditMissed && e.Why == reason.Convicted && e.Unit == 0 {
					moot++
				}
			}
			if moot != 2-rightful {
				t.Errorf("%d challenges are moot, want %d", moot, 2-rightful)
			}
			for _, v := range challengers[rightful:] {
				if m, _ := g.s.Member(v); !m.Active {
					t.Errorf("a challenger pays for the conviction: %+v", m)
				}
			}
		})
	}
}

// Any verifier may challenge a unit that was accepted, until its round is final.
func TestChallengeWindow(t *testing.T) {
	short := newTerms()
	short.Rounds, short.Window = 9, 9
	g := begin(t, short, newMembers(3, 2))
	g.round()
	g.passAll()
	at := g.s.Open[0].Attested
	for g.height < at+short.Deadlines.Challenge {
		g.tick(1)
	}
	g.challenge("v0", 0, 0)
	g.verdict(0, 0, false)
	if u := g.unit(0, 0); u.Status != work.Accepted {
		t.Fatalf("a unit that passed its audit and was challenged falsely: %+v", u)
	}
	g.tick(1)
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), "v1", work.UnitID{})
	}); codeOf(err) != "stale" {
		t.Errorf("a challenge of a final round: %v", err)
	}
}

// Two commitments of one worker for one attempt: the first binds, the second is refused, and neither costs stake.
func TestSecondCommitment(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	g.tick(1)
	u := g.s.Units[0]
	g.commit(0)
	other := commitment(g.s.RoundState, 0)
	other.Update[0]++
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), u.Worker, work.UnitID{}, other)
	}); codeOf(err) != "duplicate" {
		t.Errorf("a second commitment: %v", err)
	}
	if m, _ := g.s.Member(u.Worker); !m.Active || g.s.Units[0].Commit.Update == other.Update {
		t.Errorf("%+v", m)
	}
}

// The units of a convicted worker in earlier rounds are audited again, by another verifier than the one that passed
// them.
func TestConvictionRepeatsAudits(t *testing.T) {
	g := begin(t, long(), newMembers(3, 2))
	g.round()
	g.passAll()
	first, _ := g.s.At(0)
	g.toAudits()
	liar, _ := g.dispute(0, true)
	for i, u := range g.s.Open[0].Units {
		was := first.Units[i].Verifier
		if u.Worker == liar && (u.Status != work.Auditing || u.Verifier == was || u.Passed) {
			t.Errorf("unit %d, which %s passed: %+v", i, was, u)
		}
		if u.Worker != liar && u.Status != work.Accepted {
			t.Errorf("unit %d of another: %+v", i, u)
		}
	}
}

// pump plays a run of which a worker's commitment in round 0 was wrong, which is found when two more rounds are
// attested, and returns the commitments that were in those.
func pump(t *testing.T, c func(g *stage) work.Commitment) (g *stage, commits int) {
	return pumpOf(t, long(), c)
}

func pumpOf(t *testing.T, terms terms.Terms, c func(g *stage) work.Commitment) (g *stage, commits int) {
	t.Helper()
	g = begin(t, terms, newMembers(4, 2))
	g.tick(1)
	liar := g.s.Units[2].Worker
	wrong := c(g)
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), liar, work.UnitID{Unit: 2}, wrong)
	})
	g.commitAll()
	g.tick(2)
	g.attestAll()
	g.round()
	g.round()
	for _, l := range g.s.Open[1:] {
		commits += len(l.Where(func(u work.Unit) bool { return u.Worker != liar }))
	}
	g.challenge(g.unit(0, 2).Verifier, 0, 2)
	g.verdict(0, 2, true)
	if g.s.Round != 0 || len(g.s.RolledBack) != 2 {
		t.Fatalf("round %d, %d rounds rolled back", g.s.Round, len(g.s.RolledBack))
	}
	g.tick(30)
	if g.count(event.RoundDropped) > 0 {
		t.Fatal("rounds are dropped before it is known whether their base changes")
	}
	g.events = nil
	return g, commits
}

// A wrong state root in the middle of a unit with a right update must not make all later rounds be paid twice.
func TestRollbackWithoutEffectIsPaidOnce(t *testing.T) {
	g, commits := pump(t, func(g *stage) work.Commitment {
		c := commitment(g.s.RoundState, 2)
		c.Segments[1][0]++
		return c
	})
	g.finish()
	if g.count(event.RoundRestored) != 2 || g.count(event.RoundDropped) != 0 {
		t.Fatalf("%d rounds restored, %d dropped", g.count(event.RoundRestored), g.count(event.RoundDropped))
	}
	again := 0
	for _, e := range g.events {
		if e.Kind == event.UnitCommitted && (e.Round == 1 || e.Round == 2) {
			again++
		}
	}
	if redone := 2*int(g.s.Terms.Units) - commits; again != redone {
		t.Errorf("%d units of later rounds are done again, of which the liar had %d", again, redone)
	}
}

// Rounds that were built on a wrong update are dropped, and each unit of them is paid once.
func TestRollbackWithEffectDropsLaterRounds(t *testing.T) {
	g, _ := pump(t, func(g *stage) work.Commitment {
		c := commitment(g.s.RoundState, 2)
		c.Update[0]++
		c.UpdateCID = "bafywrong"
		return c
	})
	g.finish()
	if g.count(event.RoundRestored) != 0 || g.count(event.RoundDropped) != 2 {
		t.Errorf("%d rounds restored, %d dropped", g.count(event.RoundRestored), g.count(event.RoundDropped))
	}
}

// handing is a job whose units carry a state through all of its rounds.
func handing() terms.Terms {
	t := long()
	t.Carry, t.Window = t.Rounds, t.Rounds
	return t
}

// handed adds to a commitment a carried state that follows from its update.
func handed(c work.Commitment) work.Commitment {
	c.HandedState = work.HandedState{Root: canon.Sum("test/carried", c.Update[:]), CID: "bafycarried"}
	return c
}

// In a run whose units carry a state, a lie without effect on the state costs no later round either, and no unit is
// dealt twice on one base: audits that were drawn before the rollback are made when the round continues.
func TestRollbackWithoutEffectIsPaidOnceWhereStatesAreHandedOn(t *testing.T) {
	g, commits := pumpOf(t, handing(), func(g *stage) work.Commitment {
		c := handed(commitment(g.s.RoundState, 2))
		c.Segments[1][0]++
		return c
	})
	g.finish()
	if g.count(event.RoundRestored) != 2 || g.count(event.RoundDropped) != 0 {
		t.Fatalf("%d rounds restored, %d dropped", g.count(event.RoundRestored), g.count(event.RoundDropped))
	}
	again, passed := 0, 0
	for _, e := range g.events {
		if later := e.Round == 1 || e.Round == 2; later && e.Kind == event.UnitCommitted {
			again++
		} else if later && e.Kind == event.AuditPassed {
			passed++
		}
	}
	if all := 2 * int(g.s.Terms.Units); again != all-commits || passed != all {
		t.Errorf("%d units of later rounds are done again, of which the liar had %d; %d of %d audits pass", again,
			all-commits, passed, all)
	}
}

// If a lie had an effect, the rounds after it are dropped once they cannot be restored any more. The event of each has
// the commitments of the other workers and the convicted ones that pay for them. Until then no unit of them can be
// challenged, and the convicted worker is liable with its stake.
func TestRollbackWithEffectKeepsWhatOthersDidWhereStatesAreHandedOn(t *testing.T) {
	var liar string
	g, commits := pumpOf(t, handing(), func(g *stage) work.Commitment {
		liar = g.s.Units[2].Worker
		c := commitment(g.s.RoundState, 2)
		c.Update[0]++
		c.UpdateCID = "bafywrong"
		return handed(c)
	})
	if !g.s.Liable(liar) {
		t.Error("the stake of the convicted may leave before the rounds are dropped")
	}
	for _, u := range g.s.RolledBack[0].Units {
		f := func(s State) (State, []event.Event, error) {
			return s.Challenge(g.env(), "v1", work.UnitID{Round: 1, Unit: u.Index, Attempt: u.Attempt})
		}
		if err := g.do(f); codeOf(err) != "stale" {
			t.Errorf("a challenge in a round that was rolled back: %v", err)
		}
	}
	g.finish()
	if g.count(event.RoundRestored) != 0 || g.count(event.RoundDropped) != 2 {
		t.Fatalf("%d rounds restored, %d dropped", g.count(event.RoundRestored), g.count(event.RoundDropped))
	}
	kept := 0
	for _, e := range g.events {
		if e.Kind != event.RoundDropped {
			continue
		}
		if !slices.Equal(e.RoundState.Culprits, []string{liar}) {
			t.Errorf("round %d was dropped over %v", e.Round, e.RoundState.Culprits)
		}
		kept += len(e.RoundState.Where(func(u work.Unit) bool {
			return u.Worker != liar &&
				(u.Status == work.Committed || u.Status == work.Accepted)
		}))
	}
	if kept != commits {
		t.Errorf("%d of %d commitments of others are left", kept, commits)
	}
}
