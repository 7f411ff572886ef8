package run

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

func ledTerms() terms.Terms {
	t := newTerms()
	t.Rounds, t.Units, t.Window, t.Led = 50, 1, 4, 20
	return t
}

func (g *stage) feed(round uint32, data string) error {
	return g.do(func(s State) (State, []event.Event, error) {
		return s.Feed(g.env(), round, canon.Sum("test/data", []byte(data)), "bafydata")
	})
}

// lap of a led run: the consumer names data, and the round is attested.
func (g *stage) ledRound() {
	g.t.Helper()
	if err := g.feed(g.s.Round, "data"); err != nil {
		g.t.Fatal(err)
	}
	g.tick(1)
	g.phase(progress.Train)
	g.commitAll()
	g.tick(2)
	g.attestAll()
}

// A round of a run that its consumer leads begins with the data of the round, and with no other.
func TestLedRoundsWaitForData(t *testing.T) {
	g := begin(t, ledTerms(), newMembers(3, 2))
	g.tick(5)
	g.phase(progress.Assign)
	for name, bad := range map[string]struct {
		round uint32
		cid   string
		root  canon.Digest
		err   error
	}{
		"another round": {1, "bafydata", canon.Sum("data"), refusal.ErrStale},
		"no root":       {0, "bafydata", canon.Digest{}, refusal.ErrBadData},
		"no bytes":      {0, "", canon.Sum("data"), refusal.ErrBadData},
	} {
		err := g.do(func(s State) (State, []event.Event, error) { return s.Feed(g.env(), bad.round, bad.root, bad.cid) })
		if !errors.Is(err, bad.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 3 {
		g.ledRound()
	}
	if len(g.s.From) > 0 || g.s.Round != 3 {
		t.Fatalf("round %d begins with data %v", g.s.Round, g.s.From)
	}
	if err := g.feed(3, "data"); err != nil {
		t.Fatal(err)
	}
	if err := g.feed(3, "other"); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("the data of a round are changed: %v", err)
	}
	if _, ok := g.s.Before(g.s.RoundState); ok {
		t.Error("data of the consumer are said to be those of the round before")
	}
	plain := begin(t, newTerms(), newMembers(2, 1))
	if err := plain.feed(0, "data"); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("a run that its consumer does not lead is given data: %v", err)
	}
}

// A run whose consumer is silent ends after its rounds are final and paid, and not before.
func TestLedRunEndsWhenIdle(t *testing.T) {
	g := begin(t, ledTerms(), newMembers(3, 2))
	g.ledRound()
	since := g.s.Since
	g.tick(int(ledTerms().Led) + 10)
	g.phase(progress.Assign) // an audit is open
	g.passAll()
	g.tick(ledBlocks(g))
	g.phase(progress.Halted)
	if g.s.Why != reason.Idle || g.count(event.RoundFinal) != 1 || g.height < since+ledTerms().Led {
		t.Errorf("halted over %q with %d final rounds at height %d", g.s.Why, g.count(event.RoundFinal), g.height)
	}
}

func ledBlocks(g *stage) int { return int(g.s.ChallengeBlocks()) + 3 }

// A verdict takes a led run back to the round of the lie, which keeps its data; later rounds wait for data again.
func TestLedRollback(t *testing.T) {
	g := begin(t, ledTerms(), newMembers(3, 2))
	g.ledRound()
	if err := g.feed(1, "second"); err != nil {
		t.Fatal(err)
	}
	g.tick(1)
	liar := g.unit(0, 0).Worker
	g.challenge(g.unit(0, 0).Verifier, 0, 0)
	g.verdict(0, 0, true)
	g.phase(progress.Train)
	if u := g.s.Units[0]; g.s.Round != 0 || u.Worker == liar || len(g.s.From) != 1 || !g.s.From[0].Led {
		t.Fatalf("after the verdict round %d with data %v has unit %+v", g.s.Round, g.s.From, u)
	}
	g.commitAll()
	g.tick(2)
	g.attestAll()
	g.phase(progress.Assign)
	if g.s.Round != 1 || len(g.s.From) > 0 {
		t.Errorf("round %d has data %v", g.s.Round, g.s.From)
	}
	g.ledRound()
}

// Data that most members cannot have are dropped, and no member has missed a deadline; one that says so alone has.
func TestLedDataWithheld(t *testing.T) {
	g := begin(t, ledTerms(), newMembers(3, 2))
	if err := g.feed(0, "withheld"); err != nil {
		t.Fatal(err)
	}
	g.tick(1)
	id := g.s.Units[0].ID(0)
	lacks := func(who string) error {
		return g.do(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), who, id) })
	}
	for _, who := range []string{g.s.Units[0].Worker, "v0"} {
		if err := lacks(who); err != nil {
			t.Fatal(err)
		}
		if err := lacks(who); err == nil {
			t.Errorf("%s says so twice", who)
		}
	}
	g.phase(progress.Train)
	if err := lacks("v1"); err != nil {
		t.Fatal(err)
	}
	g.phase(progress.Assign)
	if len(g.s.Units)+len(g.s.From) > 0 || g.count(event.UnitReassigned) != 1 {
		t.Fatalf("units %v with data %v", g.s.Units, g.s.From)
	}
	for _, m := range g.s.Members {
		if !m.Active || m.Missed > 0 {
			t.Errorf("%+v", m)
		}
	}
	g.ledRound()
	if u := g.unit(0, 0); u.Attempt == id.Attempt || u.Status != work.Auditing {
		t.Errorf("with other data the unit is %+v", u)
	}
}

// A worker commits to a round whose data its consumer serves to it alone. No other can audit that. Most of the others
// say so: the round waits for other data, nothing of it is paid, and no verifier has missed an audit.
func TestLedDataForOneWorker(t *testing.T) {
	for name, rate := range map[string]uint32{"audited": 1_000_000, "not drawn": 0} {
		t.Run(name, func(t *testing.T) {
			terms := ledTerms()
			terms.AuditPPM = rate
			g := begin(t, terms, newMembers(3, 2))
			if err := g.feed(0, "for one"); err != nil {
				t.Fatal(err)
			}
			g.tick(1)
			u := g.s.Units[0]
			id, worker := u.ID(0), u.Worker
			lacks := func(who string) error {
				return g.do(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), who, id) })
			}
			if err := lacks("v0"); err != nil { // before the commitment: it counts after it, and not for the update
				t.Fatal(err)
			}
			g.commitAll()
			g.tick(2)
			if err := lacks(worker); !errors.Is(err, refusal.ErrNotYours) {
				t.Errorf("the worker that has committed has no data: %v", err)
			}
			for _, m := range g.s.Members {
				if g.s.Phase == progress.Attest && m.ID != worker && m.ID != "v0" {
					if err := lacks(m.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
			g.phase(progress.Assign)
			if len(g.s.Units)+len(g.s.From)+len(g.s.Votes) > 0 || g.s.Closed > 0 || g.s.Drawn {
				t.Fatalf("the round stands: %+v", g.s.RoundState)
			}
			for _, m := range g.s.Members {
				if !m.Active || m.Missed > 0 {
					t.Errorf("%+v", m)
				}
			}
			g.tick(int(terms.Led) + 30)
			if g.s.Why != reason.Idle || g.count(event.RoundFinal) > 0 || g.count(event.AuditPassed) > 0 {
				t.Errorf("the run ends by %q", g.s.Why)
			}
		})
	}
}

// A consumer that names data again and again that no member can have holds no seats by that for long.
func TestLedRunEndsWithoutData(t *testing.T) {
	g := begin(t, ledTerms(), newMembers(3, 2))
	g.ledRound()
	g.passAll()
	for range 3 {
		if err := g.feed(1, "withheld"); err != nil {
			t.Fatal(err)
		}
		g.tick(1)
		g.phase(progress.Train)
		id := g.s.Units[0].ID(1)
		for _, m := range []string{"v0", "v1", g.s.Units[0].Worker} {
			g.must(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), m, id) })
		}
		g.phase(progress.Assign)
	}
	if err := g.feed(1, "withheld"); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("data are named once more: %v", err)
	}
	g.tick(ledBlocks(g))
	g.phase(progress.Halted)
	if g.s.Why != reason.NoData || g.count(event.RoundFinal) != 1 {
		t.Errorf("halted over %q with %d final rounds", g.s.Why, g.count(event.RoundFinal))
	}
}

// A verifier that alone says that it has no data delays its audit once. After the round is attested it may pass the
// audit on, without a miss; then it is late as any other.
func TestLedDataSaidByOne(t *testing.T) {
	terms := ledTerms()
	terms.AuditPPM = 1_000_000
	g := begin(t, terms, newMembers(3, 1))
	if err := g.feed(0, "data"); err != nil {
		t.Fatal(err)
	}
	g.tick(1)
	g.commitAll()
	g.tick(2)
	before := g.unit(0, 0)
	lacks := func(who string) error {
		return g.do(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), who, before.ID(0)) })
	}
	if err := lacks("v0"); err != nil || before.Verifier != "v0" {
		t.Fatal(before.Verifier, err)
	}
	if err := lacks("v0"); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("it says so twice: %v", err)
	}
	due := g.unit(0, 0).Deadline
	g.attestAll()
	if err := lacks("w0"); !errors.Is(err, refusal.ErrStale) {
		t.Errorf("data of an attested round: %v", err)
	}
	if due <= before.Deadline || g.s.Round != 1 {
		t.Fatalf("in round %d the audit is due at %d, before at %d", g.s.Round, due, before.Deadline)
	}
	if err := lacks("v0"); err != nil || g.count(event.AuditMissed) != 1 {
		t.Fatal(err, g.count(event.AuditMissed))
	}
	if m, _ := g.s.Member("v0"); m.Missed > 0 || g.unit(0, 0).Status != work.Auditing {
		t.Errorf("%+v, %+v", m, g.unit(0, 0))
	}
	if err := lacks("v0"); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("it passes the audit on twice: %v", err)
	}
	g.tick(int(g.unit(0, 0).Deadline-g.height) + 2)
	if m, _ := g.s.Member("v0"); m.Missed != 1 {
		t.Errorf("%+v", m)
	}
}

// A verifier of the network that has no seat in the run passes an audit on, without a miss, and is not drawn for the
// unit again.
func TestLedDataLackedByGuest(t *testing.T) {
	terms := ledTerms()
	terms.AuditPPM = 1_000_000
	g := begin(t, terms, newMembers(3, 1))
	g.draw = func(work.UnitID) iter.Seq[crew.Member] {
		return slices.Values([]crew.Member{{ID: "g0", Role: crew.Verifier, Price: 10}, {ID: "g1", Role: crew.Verifier,
			Price: 10}})
	}
	if err := g.feed(0, "data"); err != nil {
		t.Fatal(err)
	}
	g.tick(1)
	g.commitAll()
	g.tick(2)
	for _, guest := range []string{"g0", "g1"} {
		u := g.unit(0, 0)
		if u.Verifier != guest {
			t.Fatalf("%s audits, not %s", u.Verifier, guest)
		}
		g.must(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), guest, u.ID(0)) })
		if m, _ := g.s.Member(guest); m.Missed > 0 {
			t.Errorf("%+v", m)
		}
	}
	if u := g.unit(0, 0); u.Verifier != "v0" || u.Status != work.Auditing {
		t.Errorf("%+v", u)
	}
}

// A round is attested by members that withhold its data. Verifiers that are drawn from the network cannot have them:
// the fifth of them ends the run, which pays nothing for the round. A round that is not attested waits for its members.
func TestLedDataWithheldByMost(t *testing.T) {
	for name, attested := range map[string]bool{"attested": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			terms := ledTerms()
			terms.AuditPPM = 1_000_000
			g := begin(t, terms, newMembers(3, 2))
			g.draw = func(work.UnitID) iter.Seq[crew.Member] {
				var all []crew.Member
				for i := range mostOutside + 1 {
					all = append(all, crew.Member{ID: fmt.Sprint("g", i), Role: crew.Verifier, Price: 10})
				}
				return slices.Values(all)
			}
			if err := g.feed(0, "data"); err != nil {
				t.Fatal(err)
			}
			g.tick(1)
			g.commitAll()
			g.tick(2)
			if attested {
				g.attestAll()
			}
			for i := range mostOutside {
				u := g.unit(0, 0)
				if u.Verifier != fmt.Sprint("g", i) || g.s.Over() {
					t.Fatalf("%s audits, in the phase %s", u.Verifier, g.s.Phase)
				}
				g.must(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), u.Verifier, u.ID(0)) })
			}
			if g.s.Over() != attested || attested && g.s.Why != reason.NoData || g.count(event.RoundFinal) > 0 {
				t.Errorf("the run is in the phase %s, for %q", g.s.Phase, g.s.Why)
			}
			for _, m := range g.s.Members {
				if m.Missed > 0 {
					t.Errorf("%+v", m)
				}
			}
		})
	}
}

// Verifiers of a round that was rolled back end no run: its data may be dropped.
func TestLedDataOfVoidRound(t *testing.T) {
	terms := ledTerms()
	terms.AuditPPM = 1_000_000
	g := begin(t, terms, newMembers(3, 2))
	g.draw = func(work.UnitID) iter.Seq[crew.Member] {
		var all []crew.Member
		for i := range mostOutside + 1 {
			all = append(all, crew.Member{ID: fmt.Sprint("g", i), Role: crew.Verifier, Price: 10})
		}
		return slices.Values(all)
	}
	for round := range uint32(3) {
		if err := g.feed(round, "data"); err != nil {
			t.Fatal(err)
		}
		g.tick(1)
		g.commitAll()
		g.tick(2)
		if round < 2 {
			g.attestAll()
		}
	}
	g.challenge(g.unit(0, 0).Verifier, 0, 0)
	g.verdict(0, 0, true)
	lacking := 0
	for range mostOutside {
		for _, l := range g.s.RolledBack {
			if u := l.Units[0]; l.Round == 1 && u.Status == work.Auditing && g.s.Guest(u.Verifier) {
				g.must(func(s State) (State, []event.Event, error) { return LacksData(s, g.env(), u.Verifier, u.ID(1)) })
				lacking++
			}
		}
	}
	if lacking < mostOutside || g.s.Over() {
		t.Errorf("after %d reports the run is in the phase %s, for %q", lacking, g.s.Phase, g.s.Why)
	}
}

func TestLedTerms(t *testing.T) {
	for name, spoil := range map[string]func(*terms.Terms){
		"negative": func(t *terms.Terms) { t.Led = -1 }, "short": func(t *terms.Terms) { t.Led = terms.MinBlocks - 1 },
		"long":  func(t *terms.Terms) { t.Led = terms.MaxBlocks + 1 },
		"units": func(t *terms.Terms) { t.Units = 2 }, "carries": func(t *terms.Terms) { t.Carry = 2 },
		"screens": func(t *terms.Terms) { t.Screen = terms.ScreenLosses },
	} {
		bad := ledTerms()
		spoil(&bad)
		if _, err := New(bad, newMembers(2, 1), 1); !errors.Is(err, refusal.ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLedRun reads bytes as messages of any sender to a run that its consumer leads, and as data that it names. A unit
// has a worker only in a round that has data, and no message changes its receiver or panics.
func FuzzLedRun(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 9))
	for range 10 {
		seed := make([]byte, 600)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		all := ledTerms()
		all.Led, all.Deadlines = 6, terms.Deadlines{Train: 3, Audit: 3, Attest: 3, Challenge: 2}
		s, err := New(all, newMembers(4, 2), 0)
		if err != nil {
			t.Fatal(err)
		}
		height, before := int64(1), canon.MustMarshal(s)
		for ; len(script) >= 3; script = script[3:] {
			op, who, what := script[0]%16, script[1], script[2]
			env := transition.Env{Height: height, Beacon: canon.Sum("fuzz/beacon", []byte(fmt.Sprint(height)))}
			var after State
			if op == 5 && len(s.Units) > 0 && what&1 > 0 {
				member := s.Members[int(who)%len(s.Members)].ID
				after, _, err = LacksData(s, env, member, s.Units[0].ID(s.Round))
			} else if op == 5 || op == 10 {
				root, cid := canon.Sum("fuzz/data", []byte{what & 15}), "bafydata"
				if what&0x30 == 0x30 {
					root, cid = canon.Digest{}, ""
				}
				after, _, err = s.Feed(env, s.Round-uint32(what>>7), root, cid)
			} else {
				after, _, err = move(s, env, op, who, what)
			}
			if op == 0 {
				height++
			}
			if !bytes.Equal(before, canon.MustMarshal(s)) || err != nil && !bytes.Equal(before, canon.MustMarshal(after)) {
				t.Fatalf("operation %d changed a state: %v", op, err)
			}
			if s, before = after, canon.MustMarshal(after); len(s.Units) > 0 && (len(s.From) != 1 || !s.From[0].Led) {
				t.Fatalf("round %d with units %+v has data %v", s.Round, s.Units[0], s.From)
			}
			hold(t, s)
		}
	})
}
