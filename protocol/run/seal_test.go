package run

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// held is the state at the end of any unit: one tensor of one tile. It is also the rooting under which that state has
// the root that is committed to.
type held struct{ root canon.Digest }

var tile = []byte("tile")

func (held) Roots() []canon.Digest {
	return []canon.Digest{canon.NewTree(canon.Leaves([][]byte{tile})).Root()}
}
func (held) Shape(int) []byte                                                { return nil }
func (held) Tile(int, int) []byte                                            { return tile }
func (held) Step() uint32                                                    { return 0 }
func (held) Tensor(_ []byte, _ int, tree canon.Digest) (canon.Digest, error) { return tree, nil }
func (h held) State(uint32, canon.Digest) canon.Digest                       { return h.root }

func seal(s State, round uint32, u work.Unit) *audit.Seal {
	return audit.NewSeal(s.Subject(round, u), []*canon.Tree{canon.NewTree(canon.Leaves([][]byte{tile}))})
}

// pass is an honest verifier's answer to an audit.
func pass(s State, env transition.Env, round uint32, u work.Unit) (State, []event.Event, error) {
	return s.Pass(env, u.Verifier, work.UnitID{Round: round, Unit: u.Index, Attempt: u.Attempt}, seal(s, round, u).Root())
}

// unseal is an honest verifier's opening of its seal.
func unseal(s State, env transition.Env, round uint32, u work.Unit) (State, []event.Event, error) {
	o, _ := seal(s, round, u).Open(u.Question, held{})
	var h held
	if n := len(u.Commit.Segments); n > 0 {
		h.root = s.Subject(round, u).End(u.Commit.Segments)
	}
	return s.Unseal(env, u.Verifier, work.UnitID{Round: round, Unit: u.Index, Attempt: u.Attempt}, o, h)
}

// nonce hides the state roots of every worker of the tests.
func nonce(round, unit uint32) canon.Digest {
	return audit.Nonce(canon.Sum("secret"), "job", round, unit, 0)
}

// planted is the commitment of a worker that plants a fault in a unit.
func planted(l work.RoundState, unit uint32) work.Commitment {
	c := commitment(l, unit)
	c.Segments = audit.Plant(nonce(l.Round, unit), c.Segments)
	return c
}

func (g *stage) unmask(round, unit uint32) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) { return unmask(s, g.env(), g.lap(round), unit) })
}

func unmask(s State, env transition.Env, l work.RoundState, unit uint32) (State, []event.Event, error) {
	var u work.Unit
	if int(unit) < len(l.Units) {
		u = *l.Units[unit]
	}
	id := work.UnitID{Round: l.Round, Unit: unit, Attempt: u.Attempt}
	return s.RevealPlantedFault(env, u.Worker, id, nonce(l.Round, unit),
		cut(commitment(l, unit), s.Terms, l, unit).Segments)
}

// plant brings a fresh round to its audits, in which the worker of unit 1 has planted a fault.
func (g *stage) plant() {
	g.t.Helper()
	g.tick(1)
	u := g.s.Units[1]
	g.must(func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), u.Worker, work.UnitID{Unit: 1}, planted(s.RoundState, 1))
	})
	g.commitAll()
	g.tick(2)
}

func TestVerifierThatDoesNotOpenItsSealIsOut(t *testing.T) {
	g := begin(t, long(), newMembers(3, 2))
	g.toAudits()
	u := g.unit(0, 0)
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Pass(g.env(), u.Verifier, work.UnitID{}, canon.Digest{})
	}); codeOf(err) != "bad_opening" {
		t.Errorf("no seal: %v", err)
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.Pass(g.env(), u.Verifier, work.UnitID{}, canon.Sum("rubber stamp"))
	})
	if err := g.do(func(s State) (State, []event.Event, error) {
		return unseal(s, g.env(), 0,
			g.unit(0, 0))
	}); codeOf(err) != "wrong_phase" {
		t.Errorf("before the question: %v", err)
	}
	g.tick(2)
	if g.unit(0, 0).Question.IsZero() {
		t.Fatal("nothing is asked")
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return unseal(s, g.env(), 0,
			g.unit(0, 0))
	}); codeOf(err) != "bad_opening" {
		t.Errorf("a seal of nothing: %v", err)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), u.Verifier, work.UnitID{})
	}); codeOf(err) != "wrong_phase" {
		t.Errorf("second thoughts: %v", err)
	}
	for g.count(event.AuditBroken) == 0 && g.height < 1000 {
		g.tick(1)
		for _, v := range g.s.Active(crew.Verifier) {
			for _, a := range g.s.Audits(v) {
				if v != u.Verifier {
					g.pass(v, a.Round, a.Index)
				}
			}
		}
	}
	m, _ := g.s.Member(u.Verifier)
	if m.Active || m.Why != reason.SealUnopened {
		t.Errorf("%+v", m)
	}
	if again := g.unit(0, 0); again.Verifier == u.Verifier ||
		again.Status != work.Auditing && again.Status != work.Accepted {
		t.Errorf("its audit: %+v", again)
	}
	g.finish()
}

// A verifier that passes a unit without executing it, or does not answer, delays the end of the run by the usual time
// of an answer, and not by the deadline of the terms, also if it was drawn before that time was known.
func TestLazyVerifierDoesNotHoldUpTheEnd(t *testing.T) {
	for name, seals := range map[string]bool{"seals": true, "is silent": false} {
		t.Run(name, func(t *testing.T) {
			usual := long()
			usual.Units, usual.Rounds, usual.Window = 12, 2, 8
			usual.Deadlines = terms.Deadlines{
				Train:     600,
				Audit:     600,
				Attest:    300,
				Challenge: terms.MinBlocks,
			} // of a job on a network
			g := begin(t, usual, newMembers(3, 2))
			g.toAudits()
			lazy := g.unit(0, 0).Verifier
			if seals {
				g.must(func(s State) (State, []event.Event, error) {
					return s.Pass(g.env(), lazy, work.UnitID{}, canon.Sum("rubber stamp"))
				})
				g.tick(1)
			}
			begun := g.height
			for g.s.Phase != progress.Done && g.height < begun+3000 {
				if g.s.Phase == progress.Train {
					g.commitAll()
				}
				if g.s.Phase == progress.Attest {
					g.attestAll()
				}
				for _, v := range g.s.Active(crew.Verifier) {
					for _, a := range g.s.Audits(v) {
						if v != lazy {
							g.pass(v, a.Round, a.Index)
						}
					}
				}
				g.tick(1)
			}
			if took := g.height - begun; g.s.Phase != progress.Done || took > 200 {
				t.Errorf("phase %s after %d blocks", g.s.Phase, took)
			}
		})
	}
}

// A planted fault, whether a verifier found it, passed it or did not execute the unit, changes neither the end of the
// run nor the pay of honest members.
func TestPlantedFaults(t *testing.T) {
	honest := begin(t, long(), newMembers(3, 2))
	honest.finish()
	for name, c := range map[string]struct {
		answer func(g *stage, u work.Unit)
		broken string
	}{
		"found": {func(g *stage, u work.Unit) { g.challenge(u.Verifier, 0, 1) }, ""},
		"passed and not yet opened": {func(g *stage, u work.Unit) {
			g.must(func(s State) (State, []event.Event, error) { return pass(s, g.env(), 0, g.unit(0, 1)) })
		}, reason.PlantPassed},
		"passed": {func(g *stage, u work.Unit) { g.pass(u.Verifier, 0, 1) }, reason.PlantPassed},
		"found by another": {func(g *stage, u work.Unit) {
			other := map[string]string{"v0": "v1", "v1": "v0"}[u.Verifier]
			g.challenge(other, 0, 1)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := begin(t, long(), newMembers(3, 2))
			g.plant()
			u := g.unit(0, 1)
			if err := g.do(func(s State) (State, []event.Event, error) {
				return unmask(s, g.env(), g.lap(0),
					1)
			}); codeOf(err) != "wrong_phase" {
				t.Errorf("before the answer: %v", err)
			}
			c.answer(g, u)
			g.unmask(0, 1)
			after := g.unit(0, 1)
			if !slices.Equal(after.Commit.Segments, commitment(g.s.Rounds()[0], 1).Segments) || after.Status != work.Auditing {
				t.Errorf("the unit: %+v", after)
			}
			if c.broken == "" && name == "found" && after.Verifier != u.Verifier {
				t.Error("the audit does not go on")
			}
			if err := g.do(func(s State) (State, []event.Event, error) { return unmask(s, g.env(), g.lap(0), 1) }); err == nil {
				t.Error("unmasked twice")
			}
			m, _ := g.s.Member(u.Verifier)
			if m.Active != (c.broken == "") || m.Why != c.broken {
				t.Errorf("its verifier: %+v", m)
			}
			if w, _ := g.s.Member(u.Worker); !w.Active || w.Planted != 1 {
				t.Errorf("its worker: %+v", w)
			}
			g.finish()
			if g.s.Base != honest.s.Base {
				t.Error("the plant changed the end of the run")
			}
		})
	}
}

func TestPlantThatNobodyLooksAt(t *testing.T) {
	terms := long()
	terms.AuditPPM = 0
	g := begin(t, terms, newMembers(3, 2))
	g.plant()
	g.tick(1)
	g.unmask(0, 1)
	if u := g.unit(0, 1); u.Status != work.Accepted ||
		!slices.Equal(u.Commit.Segments, commitment(g.s.Rounds()[0], 1).Segments) {
		t.Errorf("%+v", u)
	}
	g.finish()
}

// A reveal is refused unless the commitment hid the right roots and planted the fault from them.
func TestLiesAreNoPlants(t *testing.T) {
	for name, c := range map[string]struct {
		commit func(l work.RoundState) work.Commitment
		show   func(l work.RoundState) []canon.Digest
	}{
		"another root is wrong": {func(l work.RoundState) work.Commitment {
			c := planted(l, 1)
			c.Segments[0] = canon.Sum("a lie")
			return c
		}, func(l work.RoundState) []canon.Digest { return commitment(l, 1).Segments }},
		"nothing is wrong": {func(l work.RoundState) work.Commitment { return commitment(l, 1) },
			func(l work.RoundState) []canon.Digest { return commitment(l, 1).Segments }},
		"hidden after": {func(l work.RoundState) work.Commitment { return planted(l, 1) },
			func(l work.RoundState) []canon.Digest { return planted(l, 1).Segments }},
		"roots are left out": {func(l work.RoundState) work.Commitment { return planted(l, 1) },
			func(l work.RoundState) []canon.Digest { return commitment(l, 1).Segments[1:] }},
		"other roots instead": {func(l work.RoundState) work.Commitment { return planted(l, 1) },
			func(l work.RoundState) []canon.Digest { return commitment(l, 2).Segments }},
	} {
		g := begin(t, long(), newMembers(3, 2))
		g.tick(1)
		u := g.s.Units[1]
		g.must(func(s State) (State, []event.Event, error) {
			return s.Commit(g.env(), u.Worker, work.UnitID{Unit: 1}, c.commit(s.RoundState))
		})
		g.commitAll()
		g.tick(2)
		g.challenge(g.unit(0, 1).Verifier, 0, 1)
		err := g.do(func(s State) (State, []event.Event, error) {
			return s.RevealPlantedFault(g.env(), u.Worker, work.UnitID{Unit: 1}, nonce(0, 1), c.show(s.Rounds()[0]))
		})
		if codeOf(err) != "bad_plant" {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := begin(t, long(), newMembers(3, 2))
	g.plant()
	g.challenge(g.unit(0, 1).Verifier, 0, 1)
	for i := range g.s.Members {
		g.s.Members[i].Planted = audit.MayPlant(g.s.Members[i].Commits)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return unmask(s, g.env(), g.lap(0),
			1)
	}); codeOf(err) != "bad_plant" {
		t.Errorf("too many: %v", err)
	}
	other := "w0"
	if g.unit(0, 1).Worker == other {
		other = "w1"
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.RevealPlantedFault(g.env(), other, work.UnitID{Unit: 1}, nonce(0, 1), commitment(s.Rounds()[0], 1).Segments)
	}); codeOf(err) != "not_yours" {
		t.Errorf("another's: %v", err)
	}
}

// A unit that more than half of the others find odd is audited for certain, also after the draw passed it over.
func TestSuspectedUnitIsAudited(t *testing.T) {
	terms := long()
	terms.AuditPPM = 1
	g := begin(t, terms, newMembers(4, 1))
	for i := range g.s.Members {
		g.s.Members[i].Passed = 40 // no member is new
	}
	g.tick(1)
	g.commitAll()
	g.tick(2)
	u := g.unit(0, 2)
	if u.Status != work.Accepted {
		t.Fatalf("drawn: %+v", u)
	}
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Suspect(g.env(), u.Worker, work.UnitID{Unit: 2})
	}); codeOf(err) != "not_yours" {
		t.Errorf("own: %v", err)
	}
	said := 0
	for _, m := range g.s.Members {
		if m.ID == u.Worker {
			continue
		}
		if g.unit(0, 2).Status != work.Accepted && said < 3 {
			t.Fatalf("audited after %d of 4 reports", said)
		}
		g.must(func(s State) (State, []event.Event, error) {
			return s.Suspect(g.env(), m.ID, work.UnitID{Unit: 2})
		})
		said++
		if err := g.do(func(s State) (State, []event.Event, error) {
			return s.Suspect(g.env(), m.ID, work.UnitID{Unit: 2})
		}); codeOf(err) != "duplicate" {
			t.Errorf("twice: %v", err)
		}
	}
	if u := g.unit(0, 2); u.Status != work.Auditing || g.count(event.UnitSuspected) != 1 {
		t.Errorf("after %d reports: %+v", said, u)
	}
	g.finish()
}
