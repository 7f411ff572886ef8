package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// apart are terms of rounds in which two units learn from the answers of six others.
func apart(staleness uint32) terms.Terms {
	t := newTerms()
	t.Rounds, t.Units, t.Window = 6, 2, 8
	t.Rollout = terms.Rollout{Units: 6, Staleness: staleness, Flops: 100}
	return t
}

// drawing is the one right result of a unit that draws.
func drawing(l work.RoundState, unit uint32) work.Commitment {
	c := commitment(l, unit)
	c.Segments, c.Update, c.UpdateCID, c.HandedState = c.Segments[:2], canon.Digest{}, "", work.HandedState{
		Root: canon.Sum("test/drawn", l.Base.Root[:], []byte(fmt.Sprint(l.Round, unit))), CID: "bafydrawn"}
	return c
}

// learning is the one right result of a unit that learns: a function of its answers, too.
func learning(l work.RoundState, unit uint32) work.Commitment {
	c := commitment(l, unit)
	c.Update = canon.Sum("test/learnt", c.Update[:], l.From[unit].Root[:])
	c.UpdateCID = "bafy" + c.Update.Short()
	return c
}

// commitApart commits a unit of a round, right or not.
func (g *stage) commitApart(round uint32, u work.Unit, lies bool) error {
	return g.do(func(s State) (State, []event.Event, error) {
		l, _ := s.At(round)
		c := drawing(l, u.Index)
		if !u.Draws {
			c = learning(l, u.Index)
		} else if lies {
			c.HandedState.Root = canon.Sum("test/forged", c.HandedState.Root[:], []byte{byte(u.Attempt)})
		}
		return s.Commit(g.env(), u.Worker, u.ID(round), c)
	})
}

// fresh checks that all that a unit learns from was committed to, and drawn by a policy that is no older than the
// terms say.
func (g *stage) fresh() {
	g.t.Helper()
	for _, l := range g.s.Rounds() {
		policy := g.s.Terms.Policy(l.Round)
		if policy+g.s.Terms.Rollout.Staleness < l.Round {
			g.t.Fatalf("round %d learns from round %d", l.Round, policy)
		}
		from, open := g.s.Answers(policy)
		for _, u := range l.Units.Learning() {
			if u.Worker == "" {
				if len(l.From) > 0 {
					g.t.Fatalf("unit %d of round %d waits for what is there", u.Index, l.Round)
				}
				continue
			}
			if m, _ := g.s.Member(u.Worker); m.Generates {
				g.t.Fatalf("the generator %s has unit %d of round %d, which learns", m.ID, u.Index, l.Round)
			}
			if !open {
				g.t.Fatalf("round %d, from which round %d learns, is gone", policy, l.Round)
			}
			var drawn []canon.Digest
			for _, k := range g.s.Terms.DrawnFor(u.Index) {
				d := from.Units[k]
				if d.Status == work.Assigned {
					g.t.Fatalf("unit %d of round %d learns from unit %d, which is not committed", u.Index, l.Round, d.Index)
				}
				drawn = append(drawn, d.Commit.HandedState.Root)
			}
			if l.From[u.Index].Root != canon.NewTree(drawn).Root() {
				g.t.Fatalf("unit %d of round %d learns from answers that no unit has drawn", u.Index, l.Round)
			}
		}
	}
	for _, l := range g.s.RolledBack { // its units cannot be executed again: their answers may be gone
		for _, u := range l.Units {
			if u.Status != work.Assigned && u.Status != work.Committed && u.Status != work.Accepted {
				g.t.Fatalf("unit %d of round %d is void, and has status %d", u.Index, l.Round, u.Status)
			}
		}
	}
}

// lasting checks that a round is final only when no later one learns from its answers, and they could be challenged.
func (g *stage) lasting(before State) {
	g.t.Helper()
	for _, l := range before.Open {
		if _, open := g.s.At(l.Round); open || !g.s.Terms.Draws(l.Round) {
			continue
		}
		if l.Round+g.s.Terms.Rollout.Staleness >= g.s.Round && g.s.Round < g.s.Terms.Rounds {
			g.t.Fatalf("round %d is final, and round %d may learn from it", l.Round, g.s.Round)
		}
		if l.Filled == 0 || g.height < l.Filled+g.s.Terms.Deadlines.Challenge {
			g.t.Fatalf("round %d, whose answers are there since height %d, is final at height %d", l.Round, l.Filled, g.height)
		}
	}
}

// attestedBy plays a run with workers that are late, gone or lie about what they draw, and returns what was attested.
func attestedBy(t *testing.T, staleness uint32, seed uint64) []canon.Digest {
	r := rand.New(rand.NewPCG(seed, 7))
	members := newMembers(8, 3)
	for i := range members {
		m := &members[i]
		m.Generates = m.Role == crew.Worker && seed%4 == 3 && m.ID >= "w4"
	}
	g := begin(t, apart(staleness), members)
	gone := map[string]bool{}
	for len(gone) < int(seed%4) { // up to three of eight
		gone[fmt.Sprintf("w%d", r.IntN(8))] = true
	}
	lied, withheld := seed%2 == 0, 3
	for range 3000 {
		before := g.s
		g.tick(1)
		g.fresh()
		g.lasting(before)
		if g.s.Over() {
			break
		}
		for _, l := range g.s.Rounds() {
			for _, u := range l.Units {
				if u.Status != work.Assigned || u.Worker == "" || gone[u.Worker] || r.IntN(4) == 0 {
					continue
				}
				lies := u.Draws && !lied && r.IntN(8) == 0
				lied = lied || lies
				if err := g.commitApart(l.Round, *u, lies); err != nil && !errors.Is(err, refusal.ErrStale) &&
					!errors.Is(err, refusal.ErrInactive) && !errors.Is(err, refusal.ErrDuplicate) &&
					!errors.Is(err, refusal.ErrWrongPhase) && !errors.Is(err, refusal.ErrNotYours) {
					t.Fatal(err)
				}
				g.fresh()
			}
		}
		g.auditApart(r)
		for _, l := range g.s.Rounds() {
			for _, u := range l.Units {
				if seed%3 == 2 && u.Draws && u.Status != work.Assigned && len(u.Missing) == 0 && withheld > 0 && r.IntN(6) == 0 {
					withheld--
					g.reportMissing(l.Round, *u)
				}
			}
		}
		for _, m := range g.s.Members {
			if m.Active && !gone[m.ID] && g.s.Attestable() && g.s.Phase == progress.Attest && !g.s.Voted(m.ID) {
				round := g.s.Round
				g.must(func(s State) (State, []event.Event, error) { return s.Attest(g.env(), round, vote(s, m.ID)) })
				g.fresh()
			}
		}
	}
	if g.s.Phase != progress.Done {
		t.Fatalf("staleness %d, seed %d: phase %s (%s) of round %d", staleness, seed, g.s.Phase, g.s.Why, g.s.Round)
	}
	var attested []canon.Digest
	for _, e := range g.events {
		if e.Kind == event.RoundAttested {
			next := e.Entry.Attestation.Checkpoint
			attested = append(attested[:next.Round-1], next.Root)
		}
		// Only a verdict voids commitments here, and the stake of the liar pays for them first.
		if e.Kind == event.RoundDropped && len(e.RoundState.Culprits) == 0 {
			t.Fatalf("staleness %d, seed %d: the budget alone pays for the void units of round %d", staleness, seed, e.Round)
		}
	}
	return attested
}

// reportMissing lets all members but its worker report that they cannot fetch the answers of a unit.
func (g *stage) reportMissing(round uint32, u work.Unit) {
	g.t.Helper()
	for _, m := range g.s.Members {
		now, err := admission.Find(g.s.Progress, u.ID(round))
		if err != nil || now.Status == work.Assigned {
			return
		}
		if d := g.s.edit(g.env()); !d.IsRead(round) && !d.IsActive(u.Worker) {
			if err := g.do(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, u.ID(round), 0)
			}); m.Active && !errors.Is(err, refusal.ErrStale) && !errors.Is(err, refusal.ErrNotYours) {
				g.t.Fatalf("answers of a worker that has left, from which no round learns, are reported: %v", err)
			}
			return
		}
		if now := g.unit(round, u.Index); m.Active && m.ID != u.Worker && !slices.Contains(now.Missing, m.ID) {
			g.must(func(s State) (State, []event.Event, error) { return s.Missing(g.env(), m.ID, u.ID(round), 0) })
			g.fresh()
		}
	}
}

// auditApart answers the audits that are open: a lie is challenged, and lost.
func (g *stage) auditApart(r *rand.Rand) {
	for _, v := range g.s.Active(crew.Verifier) {
		for _, a := range g.s.Audits(v) {
			u, ok := g.s.Find(a.ID())
			if !ok || u.Status != work.Auditing || r.IntN(3) == 0 {
				continue
			}
			right := !u.Draws || u.Commit.HandedState == drawing(u.RoundState, u.Index).HandedState
			if right {
				g.must(func(s State) (State, []event.Event, error) { return pass(s, g.env(), a.Round, u.Unit) })
				continue
			}
			g.must(func(s State) (State, []event.Event, error) { return s.Challenge(g.env(), v, u.ID()) })
			g.must(func(s State) (State, []event.Event, error) {
				return s.Verdict(g.env(), u.ID(), true, false, u.Worker)
			})
			g.fresh()
			return
		}
	}
	for _, l := range g.s.All() {
		for _, u := range l.Units {
			if u.Status == work.Sealed && !u.Question.IsZero() && u.Seal == seal(g.s, l.Round, *u).Root() {
				g.must(func(s State) (State, []event.Event, error) { return unseal(s, g.env(), l.Round, *u) })
			}
		}
	}
}

// With any workers late, gone or forging their answers, nothing older than the terms say is learnt from, nothing forged
// stays in the lineage, and the model is the same.
func TestNothingStaleIsLearntFrom(t *testing.T) {
	for _, staleness := range []uint32{0, 1, 2, 4} {
		want := attestedBy(t, staleness, 0)
		if len(want) != 6 {
			t.Fatalf("%d rounds are attested", len(want))
		}
		for seed := uint64(1); seed <= uint64(howMany(12, 3)); seed++ {
			if got := attestedBy(t, staleness, seed); !slices.Equal(got, want) {
				t.Fatalf("staleness %d, seed %d: another lineage", staleness, seed)
			}
		}
	}
}

// Generators draw the answers of later rounds while units learn, up to the staleness, and no further.
func TestDrawingGoesOnWhileOthersLearn(t *testing.T) {
	for staleness := range uint32(3) {
		g := begin(t, apart(staleness), newMembers(8, 3))
		g.tick(1)
		for _, u := range slices.Clone(g.s.Units[2:]) {
			if err := g.commitApart(0, *u, false); err != nil {
				t.Fatal(err)
			}
		}
		rounds := uint32(0) // that learn without another unit being drawn
		for ; rounds < 6; rounds++ {
			g.tick(2)
			if g.s.Units[0].Waits() {
				break
			}
			for _, u := range slices.Clone(g.s.Units[:2]) {
				if err := g.commitApart(g.s.Round, *u, false); err != nil {
					t.Fatal(err)
				}
			}
			g.attestAll()
		}
		if rounds != staleness+1 {
			t.Errorf("staleness %d: %d rounds learn from the answers of the first", staleness, rounds)
		}
	}
}

// A run whose units wait for answers ends when no worker is left.
func TestNoWorkersForAnswers(t *testing.T) {
	g := begin(t, apart(1), newMembers(8, 3))
	g.tick(1)
	for _, u := range slices.Clone(g.s.Units[2:]) {
		if err := g.commitApart(0, *u, false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range g.s.Members {
		if m := &g.s.Members[i]; m.Role == crew.Worker {
			m.Active = false
		}
	}
	if g.tick(1); g.s.Phase != progress.Halted || g.s.Why != reason.NoWorkers {
		t.Errorf("phase %s: %s", g.s.Phase, g.s.Why)
	}
}

// A worker whose answers most members cannot fetch misses a deadline for each unit, and is out after some. Units that
// learn from them continue.
func TestWithheldAnswers(t *testing.T) {
	g := begin(t, apart(1), newMembers(8, 3))
	report := func(from string, id work.UnitID) error {
		return g.do(func(s State) (State, []event.Event, error) { return s.Missing(g.env(), from, id, 0) })
	}
	g.tick(1)
	u := *g.s.Units[2]
	other := g.s.Units[3].Worker
	if err := report(other, u.ID(0)); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("answers that are not committed: %v", err)
	}
	for _, u := range slices.Clone(g.s.Units[2:]) {
		if err := g.commitApart(0, *u, false); err != nil {
			t.Fatal(err)
		}
	}
	g.tick(1)
	if err := report(u.Worker, u.ID(0)); !errors.Is(err, refusal.ErrNotYours) {
		t.Errorf("its own: %v", err)
	}
	if err := report(other, u.ID(0)); err != nil {
		t.Fatal(err)
	}
	if err := report(other, u.ID(0)); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("again: %v", err)
	}
	if g.unit(0, 2).Withheld {
		t.Error("one member alone")
	}
	alone := g.s
	alone.Members = slices.Clone(alone.Members)
	for i := range alone.Members {
		if m := &alone.Members[i]; m.ID != u.Worker {
			m.Owner = "owner"
		}
	}
	single := &stage{t: t, s: alone, height: g.height}
	if single.reportMissing(0, u); single.unit(0, 2).Withheld {
		t.Error("one owner alone")
	}
	learner, from := *g.s.Units[0], slices.Clone(g.s.From)
	g.reportMissing(0, u)
	now := g.unit(0, 2)
	if m, _ := g.s.Member(u.Worker); !now.Withheld || now.Worker != u.Worker || m.Missed != 1 || !m.Active {
		t.Fatalf("%+v of %+v", now, m)
	}
	if n := g.count(event.AnswersWithheld); n != 1 {
		t.Errorf("%d events", n)
	}
	for _, v := range slices.Clone(g.s.Units[2:]) {
		if v.Worker == u.Worker && v.Index != u.Index {
			g.reportMissing(0, *v)
		}
	}
	if m, _ := g.s.Member(u.Worker); m.Missed != 1 || !m.Active {
		t.Errorf("several units of one round: %+v", m)
	}
	if g.tick(1); g.s.Units[0].ID(0) != learner.ID(0) || !slices.Equal(g.s.From, from) {
		t.Fatalf("%+v learns from %v, it was %+v from %v", g.s.Units[0], g.s.From, learner, from)
	}
	for range 40 {
		for _, l := range g.s.Rounds() {
			for _, v := range slices.Clone(l.Units) {
				if v.Status != work.Assigned || v.Worker == "" {
					continue
				}
				if err := g.commitApart(l.Round, *v, false); err != nil {
					t.Fatal(err)
				}
				if v.Draws && v.Worker == u.Worker {
					g.reportMissing(l.Round, g.unit(l.Round, v.Index))
				}
			}
		}
		g.auditApart(rand.New(rand.NewPCG(1, 1)))
		if g.s.Phase == progress.Attest && g.s.Attestable() {
			g.attestAll()
		}
		g.tick(1)
	}
	if m, _ := g.s.Member(u.Worker); m.Active || m.Why != reason.Unavailable {
		t.Errorf("after withholding the answers of several units: %+v", m)
	}
	if g.s.Phase != progress.Done {
		t.Errorf("phase %s of round %d: %s", g.s.Phase, g.s.Round, g.s.Why)
	}
}

// A commitment of a unit that draws hands something on, and has no update; another has one.
func TestCommitmentsOfUnitsThatDraw(t *testing.T) {
	all := apart(1)
	l := work.RoundState{From: make([]work.HandedState, 2)}
	draws, learns := drawing(l, 2), learning(l, 0)
	bad := func(change func(c *work.Commitment)) work.Commitment {
		c := draws
		change(&c)
		return c
	}
	for name, c := range map[string]work.Commitment{
		"an update":     bad(func(c *work.Commitment) { c.Update = learns.Update }),
		"nothing drawn": bad(func(c *work.Commitment) { c.HandedState = work.HandedState{} }),
		"no CID":        bad(func(c *work.Commitment) { c.HandedState.CID = "" }),
		"more roots":    bad(func(c *work.Commitment) { c.Segments = learns.Segments }),
		"learning":      learns,
	} {
		if err := work.CheckCommitment(all, c, 0, 2); !errors.Is(err, refusal.ErrBadCommitment) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(work.CheckCommitment(all, draws, 0, 2), work.CheckCommitment(all, learns, 0, 0)); err != nil {
		t.Error(err)
	}
	if err := work.CheckCommitment(all, draws, 0, 0); !errors.Is(err, refusal.ErrBadCommitment) {
		t.Errorf("a unit that learns passes on a state: %v", err)
	}
}

// Terms that units which draw do not fit to are refused.
func TestTermsOfUnitsThatDraw(t *testing.T) {
	if err := apart(terms.MaxStaleness).Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(t *terms.Terms){
		"staleness":       func(t *terms.Terms) { t.Rollout.Staleness = terms.MaxStaleness + 1 },
		"no operations":   func(t *terms.Terms) { t.Rollout.Flops = 0 },
		"unequal parts":   func(t *terms.Terms) { t.Rollout.Units = 5 },
		"none":            func(t *terms.Terms) { t.Rollout.Units = 0 },
		"too many":        func(t *terms.Terms) { t.Rollout.Units = terms.MaxUnits },
		"carried state":   func(t *terms.Terms) { t.Carry = 2 },
		"slices":          func(t *terms.Terms) { t.Slices = 2 },
		"a small window":  func(t *terms.Terms) { t.Window = 3; t.Rollout.Staleness = 2 },
		"different sizes": func(t *terms.Terms) { t.Sizes = []uint32{4, 4} },
	} {
		of := apart(1)
		if change(&of); of.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
