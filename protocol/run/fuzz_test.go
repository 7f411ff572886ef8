package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
)

// FuzzRun reads bytes as messages of anybody about anything, and checks after each of them what must always hold. The
// verdicts alone are true: w0 and w1 never lie, and must never be convicted.
func FuzzRun(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		seed := make([]byte, 900)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		s := play(t, script)
		if again := play(t, script); canon.Hash("s", again) != canon.Hash("s", s) {
			t.Fatal("the same messages give another state")
		}
	})
}

func play(t *testing.T, script []byte) State {
	all := terms()
	all.AuditPPM = 300_000
	all.Deadlines = Deadlines{Train: 3, Audit: 3, Attest: 3}
	s, err := New(all, crew(4, 2), 0)
	if err != nil {
		t.Fatal(err)
	}
	height, before := int64(1), canon.MustMarshal(s)
	for len(script) >= 3 {
		op, who, what := script[0], script[1], script[2]
		script = script[3:]
		env := Env{Height: height, Beacon: canon.Sum("fuzz/beacon", []byte(fmt.Sprint(height)))}
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
	}
	return s
}

func move(s State, env Env, op, who, what byte) (State, []Event, error) {
	member := s.Members[int(who)%len(s.Members)].ID
	unit := uint32(what) % (s.Terms.Units + 1)
	var u Unit
	if int(unit) < len(s.Units) {
		u = s.Units[unit]
	}
	liar := member == "w2" || member == "w3"
	switch op {
	case 0:
		after, events := s.Tick(env)
		return after, events, nil
	case 1, 2, 3, 4: // whose turn it is
		c := commitment(s, unit)
		if l := u.Worker; (l == "w2" || l == "w3") && what&0x80 != 0 {
			c.Update = canon.Sum("a lie")
		}
		return s.Commit(env, u.Worker, unit, s.Round, u.Attempt, c)
	case 5: // anybody
		c := commitment(s, unit)
		if liar {
			c.Loss = -1
		}
		return s.Commit(env, member, unit, s.Round, uint32(what>>6), c)
	case 6, 7:
		return s.Pass(env, u.Verifier, s.Round, unit)
	case 8:
		return s.Pass(env, member, s.Round-uint32(what>>7), unit)
	case 9:
		return s.Challenge(env, u.Verifier, s.Round, unit)
	case 10, 11:
		lies := u.Commit.Update != commitment(s, unit).Update
		loser := u.Verifier
		if lies {
			loser = u.Worker
		}
		return s.Verdict(env, s.Round, unit, lies, loser)
	case 12:
		return s.Missing(env, member, s.Round, unit)
	case 13, 14:
		return s.Attest(env, s.Round, vote(s, member))
	default:
		v := vote(s, member)
		if what&1 != 0 {
			v.Next.CID = "bafyanother"
		}
		return s.Attest(env, s.Round-uint32(what>>7), v)
	}
}

// hold checks the invariants of a state.
func hold(t *testing.T, s State) {
	t.Helper()
	dealt := s.Phase == Train || s.Phase == Exchange || s.Phase == Attest
	if dealt && len(s.Units) != int(s.Terms.Units) {
		t.Fatalf("%d units in phase %d", len(s.Units), s.Phase)
	}
	if s.Phase != Halted && (s.Base.Round != s.Round || s.Round > s.Terms.Rounds) {
		t.Fatalf("base of round %d in round %d", s.Base.Round, s.Round)
	}
	for _, id := range []string{"w0", "w1"} {
		if m, _ := s.Member(id); m.Why == WhyVerdict {
			t.Fatalf("honest %s is convicted", id)
		}
	}
	if !dealt {
		return
	}
	phase := Attest
	for i, u := range s.Units {
		w, _ := s.Member(u.Worker)
		v, _ := s.Member(u.Verifier)
		switch {
		case u.Index != uint32(i):
			t.Fatalf("unit %d at %d", u.Index, i)
		case w.Role != Worker:
			t.Fatalf("unit %d belongs to %q", i, u.Worker)
		case u.Status == Assigned && !w.Active, u.Status == Auditing && (!v.Active || v.Role != Verifier):
			t.Fatalf("a duty of a member who left: %+v", u)
		case u.Status == Accepted && w.Why == WhyVerdict && !u.Audited:
			t.Fatalf("unaudited work of a liar counts: %+v", u)
		}
		switch {
		case u.Status == Assigned:
			phase = Train
		case u.Status != Accepted && phase == Attest:
			phase = Exchange
		}
	}
	if phase != s.Phase {
		t.Fatalf("phase %d, the units are in phase %d", s.Phase, phase)
	}
	if s.Phase != Attest && len(s.Votes) > 0 {
		t.Fatal("votes before every unit is accepted")
	}
}
