package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

// FuzzRun reads bytes as messages of any sender about any unit, and checks the invariants after each of them. Only the
// verdicts are true: w0 and w1 never lie, and must never be convicted.
func FuzzRun(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range howMany(10, 3) {
		seed := make([]byte, 900)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
		sliced := slices.Clone(seed) // mostly messages of rounds in slices
		for i := 0; i < len(sliced); i += 3 {
			sliced[i] = []byte{0, 0, 1, 1, 6, 13, 13, 13, 14, 15}[r.IntN(10)]
		}
		sliced[0] = 0x80
		f.Add(sliced)
		overlapping := slices.Clone(seed) // mostly messages of rounds that overlap
		for i := 0; i < len(overlapping); i += 3 {
			overlapping[i] = []byte{0, 1, 1, 2, 6, 12, 13, 13, 13, 14}[r.IntN(10)]
		}
		overlapping[0] = 0x40
		f.Add(overlapping)
		different := slices.Clone(overlapping) // of units of different sizes
		different[0] = 0x60
		f.Add(different)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		once, again := play(t, progress.NewestRules, script), play(t, progress.NewestRules, script)
		if once != again {
			t.Fatal("the same messages give other states")
		}
	})
}

// rate gives members a measured rate, in runs of rules by which it counts.
func rate(s State, rules progress.Rules) {
	for i := range s.Members {
		if rules >= progress.RatesCount {
			s.Members[i].Rate = 1_000_000 << (i % 4) * uint64(min(i, 1))
		}
	}
}

// play returns the digest of all states and events that the messages lead to in a run of these rules.
func play(t *testing.T, rules progress.Rules, script []byte) canon.Digest {
	all := newTerms()
	all.AuditPPM = 300_000
	all.Deadlines = terms.Deadlines{Train: 3, Audit: 3, Attest: 3, Challenge: 2}
	if len(script) > 0 && script[0]&0x80 != 0 {
		all.Slices = 2
	} else if len(script) > 0 && script[0]&0x40 != 0 {
		all.Overlap, all.Carry, all.Rounds, all.Window = true, 3, 5, 4
	}
	if len(script) > 0 && script[0]&0x20 != 0 {
		all.Sizes, all.PartialAudits = []uint32{4, 1, 3, 1}, true
	}
	s, err := New(all, newMembers(4, 2), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Rules = rules
	rate(s, rules)
	height, before, history := int64(1), canon.MustMarshal(s), canon.Digest{}
	for len(script) >= 3 {
		op, who, what := script[0], script[1], script[2]
		script = script[3:]
		env := transition.Env{Height: height, Beacon: canon.Sum("fuzz/beacon", []byte(fmt.Sprint(height)))}
		after, events, err := move(s, env, op%16, who, what)
		if op%16 == 0 {
			height++
		}
		if !bytes.Equal(before, canon.MustMarshal(s)) {
			t.Fatalf("operation %d changed its receiver", op%16)
		}
		next := canon.MustMarshal(after)
		if err != nil && (!bytes.Equal(before, next) || len(events) > 0) {
			t.Fatalf("refused with %v, but changed", err)
		}
		s, before = after, next
		hold(t, s)
		history = canon.Sum("test/history", history[:], next, canon.MustMarshal(events))
	}
	return history
}

func move(s State, env transition.Env, op, who, what byte) (State, []event.Event, error) {
	member := s.Members[int(who)%len(s.Members)].ID
	unit := uint32(what) % (s.Terms.Units + 1)
	laps := s.All()
	lap := laps[int(who>>4)%len(laps)]
	var u work.Unit
	if int(unit) < len(lap.Units) {
		u = *lap.Units[unit]
	}
	switch op {
	case 0:
		env.BudgetExhausted = what == 0xff
		after, events := s.Tick(env)
		return after, events, nil
	case 1, 2, 3, 4: // whose turn it is
		c := commitment(s.RoundState, unit)
		if int(unit) < len(s.Units) {
			u = *s.Units[unit]
		}
		switch {
		case liar(u.Worker) && what&0x80 != 0:
			c.Update = canon.Sum("a lie")
		case liar(u.Worker) && what&0x60 == 0x60:
			c = divergent(s.RoundState, unit)
		case liar(u.Worker) && what&0x40 != 0:
			c = planted(s.RoundState, unit)
		}
		if s.Terms.Carries(s.Round) && !c.Diverged() {
			c.HandedState = work.HandedState{Root: canon.Sum("test/carried", c.Update[:]), CID: "bafycarried"}
		}
		return s.Commit(
			env,
			u.Worker,
			work.UnitID{Unit: unit, Round: s.Round, Attempt: u.Attempt},
			cut(c, s.Terms, s.RoundState, unit),
		)
	case 5: // anybody
		c := commitment(s.RoundState, unit)
		if liar(member) {
			c.Loss = -1
		}
		return s.Commit(env, member, work.UnitID{Unit: unit, Round: s.Round, Attempt: uint32(what >> 6)}, c)
	case 6, 7:
		if u.Status == work.Sealed {
			return unseal(s, env, lap.Round, u)
		}
		return pass(s, env, lap.Round, u)
	case 8:
		if what&1 != 0 {
			return unmask(s, env, lap, unit)
		}
		return s.Pass(env, member, work.UnitID{Round: s.Round - uint32(what>>7), Unit: unit, Attempt: uint32(what >> 6)},
			canon.Sum("seal"))
	case 9:
		return s.Challenge(env, u.Verifier, work.UnitID{Round: lap.Round, Unit: unit, Attempt: u.Attempt})
	case 10:
		return s.Challenge(env, member, work.UnitID{Round: lap.Round, Unit: unit, Attempt: u.Attempt})
	case 11:
		lies := u.Commit.Update != commitment(lap, unit).Update
		loser := u.Worker
		if !lies && len(u.Challengers) > 0 {
			loser = u.Challengers[0]
		}
		return s.Verdict(env, work.UnitID{Round: lap.Round, Unit: unit, Attempt: u.Attempt}, lies, false, loser)
	case 12:
		if what&0xe0 == 0x20 {
			return s.Leave(env, member)
		}
		if what&0xe0 == 0x40 {
			return s.Return(env, member)
		}
		if what&0xe0 == 0x60 {
			return s.Join(env, []crew.Member{{ID: fmt.Sprintf("w%d", who%8), Role: crew.Worker, Price: 10}})
		}
		if what&0xe0 == 0x80 && len(s.Probations) > 0 {
			return examination(s, env, s.Probations[int(who)%len(s.Probations)], what)
		}
		if what&0x10 != 0 {
			return s.Suspect(env, member, work.UnitID{Round: lap.Round, Unit: unit, Attempt: u.Attempt})
		}
		if s.Terms.Overlap {
			return s.Missing(env, member, work.UnitID{Round: lap.Round, Unit: unit, Attempt: u.Attempt}, 0)
		}
		return s.Missing(env, member, work.UnitID{Round: s.Round, Unit: unit, Attempt: u.Attempt}, 0)
	case 13, 14:
		if len(s.Slices) > 0 {
			return slice(s, env, member, what)
		}
		return s.Attest(env, s.Round, vote(s, member))
	default:
		if s.Phase == progress.Attest && what&4 != 0 {
			return s.ShowSlice(env, member, s.Round, s.Closed, uint32(what)%4, "bafycontest")
		}
		v := vote(s, member)
		if what&1 != 0 {
			v.Next.CID = "bafyanother"
		}
		return s.Attest(env, s.Round-uint32(what>>7), v)
	}
}

// slice is a message of a member about a slice, or its attestation if all are agreed.
func slice(s State, env transition.Env, member string, what byte) (State, []event.Event, error) {
	k := uint32(what) % 3
	cid := fmt.Sprintf("bafyslice%d", k)
	if liar(member) && what&0x80 != 0 {
		cid = "bafylie"
	}
	switch {
	case what&0x40 != 0:
		return s.ShowSlice(env, member, s.Round, s.Closed, k, cid)
	case s.Phase == progress.Attest:
		return s.Attest(env, s.Round, vote(s, member))
	case int(k) < len(s.Slices) && s.Owes(member, int(k)) == progress.OwesCID:
		return s.ShowSlice(env, member, s.Round, s.Closed, k, cid)
	}
	return s.SealSlice(env, member, s.Round, s.Closed, k, s.SliceSeal(member, k, cid))
}

// examination is a message that a member on probation may send.
func examination(s State, env transition.Env, t progress.Probation, what byte) (State, []event.Event, error) {
	switch {
	case what&1 != 0:
		return s.SubmitProbation(env, t.Member, t.Task.ID(), canon.Digest{})
	case t.Task.Worker == "" || !t.Question.IsZero():
		return show(s, env, t)
	}
	return sit(s, env, t)
}

func liar(id string) bool { return id == "w2" || id == "w3" }

// hold checks the invariants of a state.
func hold(t *testing.T, s State) {
	t.Helper()
	for _, id := range []string{"w0", "w1"} {
		if m, _ := s.Member(id); m.Why == reason.Verdict {
			t.Fatalf("honest %s is convicted", id)
		}
	}
	if len(s.Open) > int(s.Terms.Window) {
		t.Fatalf("%d rounds are open, at most %d may be", len(s.Open), s.Terms.Window)
	}
	for _, m := range s.Members {
		if _, on := s.Probation(m.ID); on != (m.Why == reason.OnProbation) || m.Active && m.Why != "" {
			t.Fatalf("standing of %+v", m)
		}
	}
	if s.Phase == progress.Halted {
		return
	}
	for i, l := range s.Rounds() {
		if l.Round != s.Oldest()+uint32(i) || l.Base.Round != l.Round || l.Round > s.Terms.Rounds {
			t.Fatalf("lap %d: round %d on base %d of %d rounds", i, l.Round, l.Base.Round, s.Terms.Rounds)
		}
		holdLap(t, s, l)
	}
	for _, l := range s.RolledBack {
		held := slices.ContainsFunc(l.Units,
			func(u *work.Unit) bool { return u.Status != work.Accepted && u.Status != work.Assigned })
		if l.Closed == 0 || !held && s.Phase == progress.Done {
			t.Fatalf("round %d was rolled back, and is kept: %+v", l.Round, l)
		}
		for _, u := range l.Units {
			if v, _ := s.Member(u.Verifier); u.Status == work.Auditing && !v.Active ||
				(u.Status == work.Disputed) != (len(u.Challengers) > 0) {
				t.Fatalf("a duty in a round that was rolled back: %+v", u)
			}
		}
	}
	if dealt := len(s.Units) > 0; dealt && len(s.Sent()) != len(s.Terms.Applied(s.Round))*int(s.Terms.Units) {
		t.Fatalf("of the rounds %v, that the next checkpoint is made of, %d units are known", s.Terms.Applied(s.Round),
			len(s.Sent()))
	}
	for _, l := range s.Open {
		if l.Closed == 0 || l.Attested == 0 {
			t.Fatalf("round %d is open, and was not committed or attested", l.Round)
		}
	}
	dealt := s.Phase == progress.Train || s.Phase == progress.Attest || s.Phase == progress.Reduce
	undecided := slices.ContainsFunc(s.Slices, func(x progress.Slice) bool { return x.Status != progress.Agreed })
	_, diverged := s.Diverged()
	committing := len(s.RoundState.Where(func(u work.Unit) bool { return u.Status == work.Assigned })) > 0
	switch {
	case dealt != (len(s.Units) > 0) || dealt && len(s.Units) != int(s.Terms.Units):
		t.Fatalf("%d units in phase %d", len(s.Units), s.Phase)
	case dealt && committing != (s.Phase == progress.Train):
		t.Fatalf("phase %d, and units are to be committed: %v", s.Phase, committing)
	case s.Phase == progress.Attest && !diverged && (undecided || len(s.Slices) != int(s.Terms.Slices)),
		s.Phase == progress.Reduce && len(s.Slices) > 0 && !undecided:
		t.Fatalf("phase %d with slices %+v", s.Phase, s.Slices)
	case len(s.Slices) > 0 && s.Phase != progress.Reduce && s.Phase != progress.Attest:
		t.Fatalf("slices in phase %d", s.Phase)
	case s.Phase != progress.Attest && len(s.Votes) > 0 && !s.Combines():
		t.Fatal("votes before every unit is committed")
	case (s.Phase == progress.Settle || s.Phase == progress.Done) != (s.Round == s.Terms.Rounds):
		t.Fatalf("phase %d in round %d", s.Phase, s.Round)
	}
}

// holdPanel checks the verifiers of a unit that is not exact.
func holdPanel(t *testing.T, s State, u work.Unit) {
	t.Helper()
	if open := u.Status == work.Auditing || u.Status == work.Sealed; open != (len(u.Looks) > 0) || u.Verifier != "" ||
		len(u.Looks) > audit.Panel {
		t.Fatalf("looks of %+v", u)
	}
	for i, x := range u.Looks {
		v, _ := s.Member(x.Verifier)
		switch {
		case x.Seal.IsZero() && !v.Active || v.Role != crew.Verifier || u.ReportOf(x.Verifier) != i:
			t.Fatalf("a duty of a member who left: %+v", x)
		case u.Status == work.Sealed && x.Seal.IsZero() || u.Status == work.Auditing && x.Shown:
			t.Fatalf("something is shown before all are bound: %+v", u)
		}
	}
}

func holdLap(t *testing.T, s State, l work.RoundState) {
	t.Helper()
	for i, u := range l.Units {
		w, _ := s.Member(u.Worker)
		v, _ := s.Member(u.Verifier)
		if s.Tolerant(*u) {
			holdPanel(t, s, *u)
			v = crew.Member{Active: true, Role: crew.Verifier}
		}
		switch {
		case u.Index != uint32(i):
			t.Fatalf("unit %d at %d", u.Index, i)
		case w.Role != crew.Worker:
			t.Fatalf("unit %d belongs to %q", i, u.Worker)
		case u.Status == work.Assigned && (!w.Active || l.Round != s.Round),
			u.Status == work.Auditing && (!v.Active || v.Role != crew.Verifier):
			t.Fatalf("a duty of a member who left: %+v", u)
		case (u.Status == work.Disputed) != (len(u.Challengers) > 0) || len(u.Challengers) > MaxChallengers:
			t.Fatalf("challengers of %+v", u)
		case w.Why == reason.Verdict && l.Round == s.Round && s.Phase == progress.Attest:
			t.Fatalf("work of a liar is aggregated: %+v", u)
		case u.Status == work.Accepted && w.Why == reason.Verdict && !u.Audited:
			t.Fatalf("unaudited work of a liar counts: %+v", u)
		}
	}
}
