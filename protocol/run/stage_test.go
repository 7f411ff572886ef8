package run

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

func newTerms() terms.Terms {
	return terms.Terms{
		Job: "job", Spec: canon.Sum("spec"), SpecCID: "bafyspec",
		Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "bafygenesis"},
		Rounds:  2, Units: 4, Segments: 4, UnitFlops: 1000, AuditPPM: 1_000_000,
		Deadlines: terms.Deadlines{Train: 10, Audit: 10, Attest: 10, Challenge: 3}, Window: 2,
	}
}

func newMembers(workers, verifiers int) []crew.Member {
	var members []crew.Member
	for i := range workers {
		members = append(members, crew.Member{ID: fmt.Sprintf("w%d", i), Role: crew.Worker, Price: 10})
	}
	for i := range verifiers {
		members = append(members, crew.Member{ID: fmt.Sprintf("v%d", i), Role: crew.Verifier, Price: 10})
	}
	return members
}

// commitment is the one right result of a unit: a function of base, round and unit.
func commitment(l work.RoundState, unit uint32) work.Commitment {
	of := func(part string) canon.Digest {
		return canon.Sum("test/"+part, l.Base.Root[:], []byte(fmt.Sprint(l.Round, unit)))
	}
	c := work.Commitment{Update: of("update"), Bytes: 100, Loss: 1}
	c.UpdateCID = "bafy" + c.Update.Short()
	for i := range newTerms().Segments + 1 {
		c.Segments = append(c.Segments, of(fmt.Sprint("segment", i)))
	}
	c.HiddenRoots = audit.Hide(nonce(l.Round, unit), c.Segments)
	return c
}

func vote(s State, member string) progress.Vote {
	next := terms.Checkpoint{Round: s.Round + 1, Root: canon.Hash("test/root", s.Attestation(terms.Checkpoint{}).Updates)}
	next.CID = "bafy" + next.Root.Short()
	return progress.Vote{Member: member, Next: next, Signature: []byte("signed")}
}

// stage drives one run in a test; every transition is checked to leave its receiver alone.
type stage struct {
	t        *testing.T
	s        State
	height   int64
	events   []event.Event
	at       []int64                                    // heights of the events
	draw     func(id work.UnitID) iter.Seq[crew.Member] // of verifiers from the network
	attested func(member string) canon.Digest           // what runs in machines
	dark     bool                                       // blocks have no beacon
	covers   func(unit uint32, price uint64) bool       // whether the budget covers one more audit; nil: it does
}

func begin(t *testing.T, terms terms.Terms, members []crew.Member) *stage {
	t.Helper()
	s, err := New(terms, members, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t: t, s: s, height: 1}
}

func (g *stage) env() transition.Env {
	env := transition.Env{Height: g.height, Draw: g.draw, Attested: g.attested}
	if g.covers != nil {
		env.Covers = func(progress.Progress) func(uint32, uint64, bool) bool {
			return func(unit uint32, price uint64, _ bool) bool { return g.covers(unit, price) }
		}
	}
	if !g.dark {
		env.Beacon = canon.Sum("test/beacon", []byte(fmt.Sprint(g.height)))
	}
	return env
}

func (g *stage) do(f func(State) (State, []event.Event, error)) error {
	g.t.Helper()
	before := canon.MustMarshal(g.s)
	after, events, err := f(g.s)
	if !slices.Equal(before, canon.MustMarshal(g.s)) {
		g.t.Fatal("the transition changed its receiver")
	}
	if err != nil && (len(events) > 0 || !slices.Equal(before, canon.MustMarshal(after))) {
		g.t.Fatalf("refused (%v), but the state changed", err)
	}
	g.s, g.events = after, append(g.events, events...)
	for range events {
		g.at = append(g.at, g.height)
	}
	return err
}

func (g *stage) must(f func(State) (State, []event.Event, error)) {
	g.t.Helper()
	if err := g.do(f); err != nil {
		g.t.Fatal(err)
	}
}

// tick ends blocks.
func (g *stage) tick(blocks int) {
	g.t.Helper()
	for range blocks {
		g.must(func(s State) (State, []event.Event, error) {
			s, events := s.Tick(g.env())
			return s, events, nil
		})
		g.height++
	}
}

func (g *stage) commit(unit uint32) {
	g.t.Helper()
	u := g.s.Units[unit]
	g.must(func(s State) (State, []event.Event, error) {
		c := commitment(s.RoundState, unit)
		if s.Terms.Carries(s.Round) {
			c.HandedState = work.HandedState{Root: canon.Sum("test/carried", c.Update[:]), CID: "bafycarried"}
		}
		if len(s.Terms.Pipeline.Flops) > 0 {
			c = linked(s, c, unit)
		}
		return s.Commit(g.env(), u.Worker, work.UnitID{Unit: unit, Round: s.Round, Attempt: u.Attempt}, c)
	})
}

func (g *stage) commitAll() {
	g.t.Helper()
	for _, u := range g.s.Units {
		if u.Status == work.Assigned {
			g.commit(u.Index)
		}
	}
}

// passAll answers every open audit.
func (g *stage) passAll() {
	g.t.Helper()
	g.sealAll()
	g.unsealAll()
}

func (g *stage) sealAll() {
	g.t.Helper()
	for _, v := range g.s.Active(crew.Verifier) {
		for _, a := range g.s.Audits(v) {
			g.must(func(s State) (State, []event.Event, error) { return pass(s, g.env(), a.Round, a.Unit) })
		}
	}
}

func (g *stage) unit(round, unit uint32) work.Unit {
	g.t.Helper()
	return *g.lap(round).Units[unit]
}

func (g *stage) lap(round uint32) work.RoundState {
	g.t.Helper()
	l, ok := g.s.At(round)
	if !ok {
		g.t.Fatalf("round %d is gone", round)
	}
	return l
}

// pass answers an audit, and opens the seal.
func (g *stage) pass(from string, round, unit uint32) {
	g.t.Helper()
	g.seal(from, round, unit)
	g.unsealAll()
}

func (g *stage) seal(from string, round, unit uint32) {
	g.t.Helper()
	if u := g.unit(round, unit); u.Verifier != from {
		g.t.Fatalf("unit %d of round %d is audited by %s, not %s", unit, round, u.Verifier, from)
	}
	g.must(func(s State) (State, []event.Event, error) { return pass(s, g.env(), round, g.unit(round, unit)) })
}

// unsealAll lets blocks pass until it is known where the seals must be opened, and opens those that can be.
func (g *stage) unsealAll() {
	g.t.Helper()
	g.tick(2)
	g.openAll()
}

func (g *stage) openAll() {
	g.t.Helper()
	for _, l := range g.s.All() {
		for _, u := range l.Units {
			if u.Status == work.Sealed && u.Seal == seal(g.s, l.Round, *u).Root() {
				g.must(func(s State) (State, []event.Event, error) { return unseal(s, g.env(), l.Round, *u) })
			}
		}
	}
}

func (g *stage) challenge(from string, round, unit uint32) {
	g.t.Helper()
	attempt := g.unit(round, unit).Attempt
	g.must(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), from, work.UnitID{Round: round, Unit: unit, Attempt: attempt})
	})
}

// verdict ends the dispute that is being played about a unit, and returns its parties.
func (g *stage) verdict(round, unit uint32, workerLies bool) (worker, challenger string) {
	g.t.Helper()
	u := g.unit(round, unit)
	worker, challenger = u.Worker, u.Challengers[0]
	loser := challenger
	if workerLies {
		loser = worker
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), work.UnitID{Round: round, Unit: unit, Attempt: u.Attempt}, workerLies, false, loser)
	})
	return worker, challenger
}

// dispute lets the verifier of an audit in the current round challenge, and ends it.
func (g *stage) dispute(unit uint32, workerLies bool) (worker, verifier string) {
	g.t.Helper()
	g.challenge(g.s.Units[unit].Verifier, g.s.Round, unit)
	return g.verdict(g.s.Round, unit, workerLies)
}

func (g *stage) attestAll() {
	g.t.Helper()
	round := g.s.Round
	for _, m := range g.s.Members {
		if m.Active && g.s.Round == round && g.s.Combines() && !g.s.Voted(m.ID) {
			g.must(func(s State) (State, []event.Event, error) { return s.Attest(g.env(), round, vote(s, m.ID)) })
		}
	}
}

// toAudits brings a fresh round to the block in which its audits are drawn.
func (g *stage) toAudits() {
	g.t.Helper()
	g.tick(1)
	g.commitAll()
	g.tick(2)
}

// round brings a fresh round to its attestation, with its audits drawn and open.
func (g *stage) round() {
	g.t.Helper()
	g.toAudits()
	g.phase(progress.Attest)
	g.attestAll()
}

func (g *stage) phase(want progress.Phase) {
	g.t.Helper()
	if g.s.Phase != want {
		g.t.Fatalf("phase %d (%s), want %d", g.s.Phase, g.s.Why, want)
	}
}

func (g *stage) count(kind event.Kind) int {
	n := 0
	for _, e := range g.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// codeOf is the stable code of an error that wraps an *Error, and "internal" for any other.
func codeOf(err error) string {
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return e.Code
	}
	return "internal"
}
