package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

func sliced(n uint32) terms.Terms {
	t := newTerms()
	t.Slices = n
	t.Deadlines.Train = 100
	return t
}

// partOf is the one right result of a slice: a function of the updates of the round.
func partOf(s State, slice int) string {
	return fmt.Sprintf("bafyslice%d%v", slice, s.Attestation(terms.Checkpoint{}).Updates)[:60]
}

func (g *stage) sealSlice(from string, slice int, cid string) error {
	g.t.Helper()
	return g.do(func(s State) (State, []event.Event, error) {
		return s.SealSlice(g.env(), from, s.Round, s.Closed, uint32(slice), s.SliceSeal(from, uint32(slice), cid))
	})
}

func (g *stage) showSlice(from string, slice int, cid string) error {
	g.t.Helper()
	return g.do(func(s State) (State, []event.Event, error) {
		return s.ShowSlice(g.env(), from, s.Round, s.Closed, uint32(slice), cid)
	})
}

// said is the result that a member shows for a slice, in a test; "" if it stays silent.
type said func(member string, slice int) string

// speak lets all members do what they owe for the slices, once.
func (g *stage) speak(lie said) {
	g.t.Helper()
	for i := range g.s.Slices {
		for _, m := range g.s.Members {
			if !m.Active || i >= len(g.s.Slices) {
				continue
			}
			cid := partOf(g.s, i)
			if lie != nil {
				cid = lie(m.ID, i)
			}
			if cid == "" {
				continue
			}
			var err error
			switch g.s.Owes(m.ID, i) {
			case progress.OwesSeal:
				err = g.sealSlice(m.ID, i, cid)
			case progress.OwesCID:
				err = g.showSlice(m.ID, i, cid)
			}
			if err != nil {
				g.t.Fatalf("%s about slice %d: %v", m.ID, i, err)
			}
		}
	}
}

// toSlices brings a fresh round to the block in which its reducers are drawn.
func (g *stage) toSlices() {
	g.t.Helper()
	g.tick(1)
	g.commitAll()
	g.phase(progress.Reduce)
	g.tick(1)
	if len(g.s.Slices) != 0 {
		g.t.Fatal("reducers are drawn under a beacon that the last worker to commit may have known")
	}
	g.tick(1)
	if len(g.s.Slices) != int(g.s.Terms.Slices) {
		g.t.Fatalf("%d slices", len(g.s.Slices))
	}
}

// reduceAll lets blocks pass in which all members say what they say, until the slices are agreed.
func (g *stage) reduceAll(lie said) {
	g.t.Helper()
	for range 400 {
		if g.s.Phase != progress.Reduce {
			return
		}
		g.speak(lie)
		g.tick(1)
	}
	g.t.Fatalf("the slices are not agreed: %+v", g.s.Slices)
}

func (g *stage) reducers(slice int) (ids []string) {
	for _, r := range g.s.Slices[slice].Reducers {
		ids = append(ids, r.Member)
	}
	return ids
}

func TestSlicedRun(t *testing.T) {
	for _, ppm := range []uint32{0, 500_000, 1_000_000} {
		all := sliced(5)
		all.AuditPPM = ppm
		g := begin(t, all, newMembers(4, 2))
		for range all.Rounds {
			g.toSlices()
			duties := map[string]int{}
			for i := range g.s.Slices {
				for _, id := range g.reducers(i) {
					duties[id]++
				}
			}
			for id, n := range duties {
				if len(g.s.Slices[0].Reducers) != 2 || n < 1 || n > 2 {
					t.Errorf("%s has %d of 10 duties of 6 members", id, n)
				}
			}
			if err := g.do(func(s State) (State, []event.Event, error) {
				return s.Attest(g.env(), s.Round,
					vote(s, "w0"))
			}); !errors.Is(err, refusal.ErrWrongPhase) {
				t.Errorf("an attestation before the slices are agreed: %v", err)
			}
			g.reduceAll(nil)
			g.phase(progress.Attest)
			for i, cid := range g.s.Results() {
				if cid != partOf(g.s, i) {
					t.Errorf("slice %d is %q", i, cid)
				}
			}
			g.attestAll()
			g.passAll()
		}
		g.tick(5)
		g.passAll()
		g.tick(5)
		g.phase(progress.Done)
		if g.count(event.MemberLeft)+g.count(event.SliceMissed)+g.count(event.SliceContested) != 0 ||
			g.count(event.SlicesAgreed) != 2 {
			t.Errorf("events at an audit rate of %d: %+v", ppm, g.events)
		}
		if n := g.count(event.SliceAssigned); ppm == 0 && n != 20 || ppm == 1_000_000 && n != 30 || n < 20 || n > 30 {
			t.Errorf("%d reducers at an audit rate of %d, two of 10 slices and one more of each that is audited", n, ppm)
		}
	}
}

// The third reducer is drawn when the first two are bound, and no result is shown before all three are bound.
func TestSliceAuditIsBlind(t *testing.T) {
	g := begin(t, sliced(1), newMembers(3, 1))
	g.toSlices()
	pair := g.reducers(0)
	cid := partOf(g.s, 0)
	if err := g.showSlice(pair[0], 0, cid); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("shown before it is sealed: %v", err)
	}
	g.speak(nil)
	g.tick(1)
	if n := len(g.s.Slices[0].Reducers); n != 2 {
		t.Fatalf("%d reducers in the block of the last seal, whose beacon its sender may have known", n)
	}
	g.tick(1)
	if n := len(g.s.Slices[0].Reducers); n != 3 || g.s.Slices[0].Status != progress.Reducing {
		t.Fatalf("%d reducers of an audited slice", n)
	}
	if err := g.showSlice(pair[0], 0, cid); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("shown before the audit is sealed: %v", err)
	}
	g.speak(nil)
	g.tick(1)
	if err := g.showSlice(pair[0], 0, "bafyother"); !errors.Is(err, refusal.ErrBadSlice) {
		t.Errorf("something else than was sealed: %v", err)
	}
	g.reduceAll(nil)
	g.phase(progress.Attest)
}

func TestRefusedSlices(t *testing.T) {
	g := begin(t, sliced(2), newMembers(5, 1))
	if err := g.sealSlice("w0", 0, "bafy"); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("before the reducers are drawn: %v", err)
	}
	g.toSlices()
	who := g.reducers(0)[0]
	other := g.s.Members[slices.IndexFunc(g.s.Members,
		func(m crew.Member) bool { return !slices.Contains(g.reducers(0), m.ID) })].ID
	seal := func(from string, round uint32, closed int64, slice uint32) error {
		return g.do(func(s State) (State, []event.Event, error) {
			return s.SealSlice(g.env(), from, round, closed, slice, s.SliceSeal(from, slice, "bafy"))
		})
	}
	for _, c := range []struct {
		err  error
		want error
	}{
		{seal(who, 1, g.s.Closed, 0), refusal.ErrStale},
		{seal(who, 0, g.s.Closed-1, 0), refusal.ErrStale},
		{seal(who, 0, g.s.Closed, 2), refusal.ErrBadSlice},
		{seal(other, 0, g.s.Closed, 0), refusal.ErrNotYours},
		{seal("nobody", 0, g.s.Closed, 0), refusal.ErrNotMember},
		{g.do(func(s State) (State, []event.Event, error) {
			return s.SealSlice(g.env(), who, 0, s.Closed, 0, [32]byte{})
		}), refusal.ErrBadSlice},
		{seal(who, 0, g.s.Closed, 0), nil},
		{seal(who, 0, g.s.Closed, 0), refusal.ErrDuplicate},
		{g.showSlice(who, 0, ""), refusal.ErrBadSlice},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
}

func TestSilentReducerIsReplaced(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		all := sliced(1)
		all.AuditPPM = 0
		g := begin(t, all, newMembers(4, 1))
		g.toSlices()
		silent := g.reducers(0)[0]
		if sealed {
			if err := g.sealSlice(silent, 0, partOf(g.s, 0)); err != nil {
				t.Fatal(err)
			}
		}
		g.reduceAll(func(member string, slice int) string {
			if member == silent {
				return ""
			}
			return partOf(g.s, slice)
		})
		g.phase(progress.Attest)
		m, _ := g.s.Member(silent)
		if g.count(event.SliceMissed) != 1 || g.count(event.SliceAssigned) != 3 || g.count(event.SliceContested) != 0 ||
			!m.Active ||
			m.Silent != 1 {
			t.Errorf("sealed: %v: %+v, %+v", sealed, m, g.events)
		}
		if slices.Contains(g.reducers(0), silent) {
			t.Error("the silent one counts as a holder of the slice")
		}
	}
}

// A worker whose update is unavailable may be in a long dispute. No member is excluded over duties that need the
// update.
func TestNobodyIsLateForAWithheldUpdate(t *testing.T) {
	for _, slices := range []uint32{0, 2} {
		all := sliced(slices)
		g := begin(t, all, newMembers(4, 2))
		g.toAudits()
		const unit = 1
		liar := g.s.Units[unit].Worker
		for _, m := range g.s.Members {
			if m.ID != liar {
				g.must(func(s State) (State, []event.Event, error) {
					return s.Missing(g.env(), m.ID, work.UnitID{Unit: unit}, 0)
				})
			}
		}
		for _, a := range g.s.Units {
			if a.Index != unit {
				g.pass(a.Verifier, 0, a.Index)
			}
		}
		g.challenge(g.s.Units[unit].Verifier, 0, unit)
		g.tick(200)
		g.verdict(0, unit, true)
		for _, m := range g.s.Members {
			if m.Active == (m.ID == liar) || m.ID != liar && m.Silent > 0 {
				t.Errorf("%d slices: %+v", slices, m)
			}
		}
		g.tick(2)
		g.commitAll()
		g.reduceAll(nil)
		g.phase(progress.Attest)
	}
}

// A liar is outvoted by all, in whichever order it speaks; it is out of the run, not slashed, and its open work is
// audited.
func TestLyingReducer(t *testing.T) {
	for _, first := range []bool{true, false} {
		all := sliced(2)
		all.AuditPPM = 1
		g := begin(t, all, newMembers(5, 1))
		g.toSlices()
		liar := ""
		for _, u := range g.s.Units {
			if slices.Contains(g.reducers(1), u.Worker) {
				liar = u.Worker
			}
		}
		if liar == "" {
			liar = g.reducers(1)[0]
		}
		says := func(lying bool) said {
			return func(member string, slice int) string {
				switch {
				case (member == liar) != lying:
					return ""
				case lying && slice == 1:
					return "bafylie"
				}
				return partOf(g.s, slice)
			}
		}
		for g.s.Phase == progress.Reduce {
			g.speak(says(first))
			g.speak(says(!first))
			g.tick(1)
		}
		g.phase(progress.Attest)
		if g.count(event.SliceContested) != 1 {
			t.Errorf("%d slices are contested", g.count(event.SliceContested))
		}
		m, _ := g.s.Member(liar)
		if m.Active || m.Why != reason.WrongSlice || g.count(event.MemberLeft) != 1 {
			t.Errorf("the liar: %+v", m)
		}
		if want := partOf(g.s, 1); g.s.Results()[1] != want {
			t.Errorf("the slice is %q, want %q", g.s.Results()[1], want)
		}
		for _, u := range g.s.Units {
			if u.Worker == liar && !u.Audited {
				t.Errorf("work of the liar goes without an audit: %+v", u)
			}
		}
	}
}

// Two reducers of one mind get a wrong slice agreed; any member that looks contests it, and a quorum puts it right.
func TestCollusionIsContested(t *testing.T) {
	all := sliced(1)
	all.AuditPPM = 0
	g := begin(t, all, newMembers(6, 1))
	g.toSlices()
	pair := g.reducers(0)
	lies := func(member string, slice int) string {
		if slices.Contains(pair, member) {
			return "bafylie"
		}
		return partOf(g.s, slice)
	}
	g.reduceAll(lies)
	g.phase(progress.Attest)
	if g.s.Results()[0] != "bafylie" {
		t.Fatal("two that agree decide")
	}
	outside := func(m crew.Member) bool { return !slices.Contains(pair, m.ID) }
	watcher := g.s.Members[slices.IndexFunc(g.s.Members, outside)].ID
	if err := g.showSlice(watcher, 0, "bafylie"); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("a contest that agrees: %v", err)
	}
	if err := g.showSlice(watcher, 0, partOf(g.s, 0)); err != nil {
		t.Fatal(err)
	}
	g.phase(progress.Reduce)
	g.reduceAll(lies)
	g.phase(progress.Attest)
	if g.s.Results()[0] != partOf(g.s, 0) || g.count(event.MemberLeft) != 2 {
		t.Errorf("after the contest: %q, %d members left", g.s.Results()[0], g.count(event.MemberLeft))
	}
	g.attestAll()
	if g.s.Round != 1 {
		t.Errorf("the round is not attested")
	}
}

// A member that contests a right slice is excluded, and the slice stands.
func TestFalseContest(t *testing.T) {
	all := sliced(1)
	all.AuditPPM = 0
	g := begin(t, all, newMembers(5, 1))
	g.toSlices()
	g.reduceAll(nil)
	g.phase(progress.Attest)
	if err := g.showSlice("w0", 0, "bafylie"); err != nil {
		t.Fatal(err)
	}
	g.reduceAll(func(member string, slice int) string { return partOf(g.s, slice) })
	g.phase(progress.Attest)
	if m, _ := g.s.Member("w0"); m.Active || m.Why != reason.WrongSlice || g.count(event.MemberLeft) != 1 {
		t.Errorf("%+v", m)
	}
}

// A unit that goes to another worker makes new slices; what was sealed before is stale.
func TestSlicesFollowTheUnits(t *testing.T) {
	g := begin(t, sliced(2), newMembers(4, 1))
	g.toSlices()
	closed := g.s.Closed
	liar := g.s.Units[1].Worker
	g.tick(1)
	if g.s.Units[1].Status != work.Auditing {
		t.Fatalf("unit 1: %+v", g.s.Units[1])
	}
	g.dispute(1, true)
	g.phase(progress.Train)
	if len(g.s.Slices) != 0 {
		t.Fatal("slices of updates that do not count")
	}
	g.commitAll()
	g.tick(2)
	for _, m := range g.s.Members {
		if m.ID == liar {
			continue
		}
		err := g.do(func(s State) (State, []event.Event, error) {
			return s.SealSlice(g.env(), m.ID, 0, closed, 0, s.SliceSeal(m.ID, 0, "bafy"))
		})
		if !errors.Is(err, refusal.ErrStale) {
			t.Errorf("a seal of before: %v", err)
		}
	}
	g.reduceAll(nil)
	g.phase(progress.Attest)
}

// A verdict about an attested round rolls it back, and its slices are computed again.
func TestRollbackOfSlices(t *testing.T) {
	long := sliced(2)
	long.Rounds = 4
	g := begin(t, long, newMembers(4, 2))
	for range 2 {
		g.toSlices()
		g.reduceAll(nil)
		g.attestAll()
	}
	if g.s.Round != 2 {
		t.Fatalf("round %d", g.s.Round)
	}
	at := slices.IndexFunc(g.s.Open[0].Units, func(u *work.Unit) bool { return u.Status == work.Auditing })
	u := g.unit(0, uint32(at))
	g.challenge(u.Verifier, 0, u.Index)
	g.verdict(0, u.Index, true)
	g.phase(progress.Train)
	if g.s.Round != 0 || len(g.s.Slices) != 0 {
		t.Fatalf("round %d, %d slices", g.s.Round, len(g.s.Slices))
	}
	g.commitAll()
	g.tick(2)
	g.reduceAll(nil)
	g.phase(progress.Attest)
	g.attestAll()
	if g.s.Round != 1 {
		t.Errorf("round %d", g.s.Round)
	}
}

// In a run with one member one reducer is enough; a late reducer is asked again if there is no other.
func TestFewReducers(t *testing.T) {
	all := sliced(2)
	all.AuditPPM = 0
	g := begin(t, all, newMembers(1, 0))
	g.toSlices()
	g.tick(12)
	if g.count(event.SliceMissed) != 2 || g.s.Owes("w0", 0) != progress.OwesSeal {
		t.Errorf("%d missed: %+v", g.count(event.SliceMissed), g.s.Slices)
	}
	g.reduceAll(nil)
	g.phase(progress.Attest)
}
