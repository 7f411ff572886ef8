package run

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

func link(from, to uint32) terms.Link { return terms.Link{From: from, To: to} }

// lacks reports that the values of a link into a unit cannot be had.
func (g *stage) lacks(from string, round, unit, link uint32) error {
	return g.do(func(s State) (State, []event.Event, error) {
		return s.Missing(g.env(), from, g.unit(round, unit).ID(round), link)
	})
}

// into is the number of the link from one stage to another, as the second counts them.
func into(s State, from, to uint32) uint32 {
	for i, l := range s.Terms.Pipeline.LinksOf(to) {
		if l.From == from && l.To == to {
			return uint32(i) + 1
		}
	}
	return 0
}

// honest are the active members but for some.
func (g *stage) honest(liars ...string) (ids []string) {
	for _, m := range g.s.Members {
		if m.Active && !slices.Contains(liars, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// seen reports whether there was an event.
func (g *stage) seen(kind event.Kind, who, why string) bool {
	return slices.ContainsFunc(g.events, func(e event.Event) bool {
		return e.Kind == kind && (who == "" || e.Who == who) && (why == "" || e.Why == why)
	})
}

// Two neighbours that both lied serve nothing of the link between them, so no verifier can execute their units alone.
// Their units go to others, and the run does not end: no other loses stake, a seat or a deadline.
func TestNeighboursThatHideTheirLink(t *testing.T) {
	for _, earlier := range []bool{false, true} { // the round is attested before the deadline of the audit
		g := begin(t, inStages(), newMembers(8, 3))
		g.toAudits()
		liars := []string{g.s.Units[1].Worker, g.s.Units[2].Worker}
		for i := range uint32(6) { // of the others the audits are answered
			if v := g.unit(0, i).Verifier; i != 1 && i != 2 {
				g.seal(v, 0, i)
			}
		}
		g.unsealAll()
		if earlier {
			g.attestAll()
			if g.s.Round != 1 {
				t.Fatalf("round %d", g.s.Round)
			}
		}
		for _, unit := range []uint32{1, 2} {
			other := 3 - unit
			link := into(g.s, other, unit)
			first := g.unit(0, unit).Verifier
			if err := g.lacks(first, 0, unit, link); err != nil {
				t.Fatal(err)
			}
			for _, id := range g.honest(append(liars, first)...) {
				if err := g.lacks(id, 0, unit, link); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range liars {
				if err := g.lacks(id, 0, unit, link); !errors.Is(err, refusal.ErrNotYours) {
					t.Errorf("a side of the link reports it: %v", err)
				}
			}
		}
		if g.seen(event.DepositForfeited, "", "") {
			t.Fatal("no side has the time to serve the values")
		}
		for n := 0; n < 100 && !g.seen(event.DepositForfeited, "", ""); n++ {
			g.tick(1)
			if g.s.Round == 1 {
				g.commitAll()
			}
		}
		if g.s.Round != 0 || g.s.Phase != progress.Train {
			t.Fatalf("round %d, phase %v", g.s.Round, g.s.Phase)
		}
		for _, m := range g.s.Members {
			guilty := slices.Contains(liars, m.ID)
			if m.Active == guilty || guilty && m.Why != reason.HiddenLink || m.Missed > 0 ||
				guilty != g.seen(event.DepositForfeited, m.ID, reason.HiddenLink) {
				t.Errorf("%s: %+v", m.ID, m)
			}
		}
		if got := g.attempts(0); slices.Contains(got, 0) || got[0] != got[2] || g.s.Units[4].Status == work.Assigned {
			t.Errorf("attempts %v, the other replica %v", got, g.s.Units[4].Status)
		}
		for i := 0; i < 4*int(g.s.Terms.Rounds) && g.s.Phase != progress.Done; i++ {
			g.commitAll()
			g.tick(2)
			g.passAll()
			g.attestAll()
			g.tick(5)
		}
		g.phase(progress.Done)
	}
}

// Of three neighbours that lied none escapes by the links that the others hide: those of a replica that are hidden end
// together, when the deadline of each audit has passed.
func TestThreeNeighboursThatHideTheirLinks(t *testing.T) {
	g := begin(t, inStages(), newMembers(8, 3))
	g.toAudits()
	var liars []string
	for i := range uint32(6) {
		if u := g.unit(0, i); i < 3 {
			liars = append(liars, u.Worker)
		} else {
			g.seal(u.Verifier, 0, i)
		}
	}
	g.unsealAll()
	for unit, other := range []uint32{1, 2, 1} {
		first, l := g.unit(0, uint32(unit)).Verifier, into(g.s, other, uint32(unit))
		for _, id := range append([]string{first}, g.honest(append(liars, first)...)...) {
			if err := g.lacks(id, 0, uint32(unit), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := 0; n < 100 && !g.seen(event.DepositForfeited, "", ""); n++ {
		g.tick(1)
	}
	for _, m := range g.s.Members {
		guilty := slices.Contains(liars, m.ID)
		if m.Active == guilty || guilty && m.Why != reason.HiddenLink || m.Missed > 0 ||
			guilty != g.seen(event.DepositForfeited, m.ID, reason.HiddenLink) {
			t.Errorf("%s: %+v", m.ID, m)
		}
	}
}

// A verifier that reports a link which can be had takes no unit from its worker, and has missed its deadline.
func TestAReportOfALinkAlone(t *testing.T) {
	g := begin(t, inStages(), newMembers(6, 3))
	g.toAudits()
	u := g.s.Units[1]
	link := into(g.s, 0, 1)
	for name, c := range map[string]struct {
		from string
		link uint32
		want error
	}{
		"of another verifier before that of the unit": {g.honest(u.Verifier, u.Worker, g.s.Units[0].Worker)[0], link,
			refusal.ErrBadSlice},
		"of a link out of the stage": {u.Verifier, into(g.s, 2, 1) + 1, refusal.ErrBadSlice},
		"of no link":                 {u.Verifier, 99, refusal.ErrBadSlice},
		"of a stranger":              {"x", link, refusal.ErrNotMember},
	} {
		if err := g.lacks(c.from, 0, 1, c.link); !errors.Is(err, c.want) {
			t.Errorf("a report %s: %v", name, err)
		}
	}
	liar := u.Verifier
	if err := g.lacks(liar, 0, 1, link); err != nil {
		t.Fatal(err)
	}
	if err := g.lacks(liar, 0, 1, link); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("a second report: %v", err)
	}
	if _, hidden := auditing.Hidden(g.s.edit(g.env()).Audits, &g.s.RoundState, 1); hidden {
		t.Error("the word of one member is enough")
	}
	g.tick(int(g.s.Units[1].Deadline-g.height) + 2)
	if m, _ := g.s.Member(liar); m.Missed != 1 || g.s.Units[1].Verifier == liar || g.seen(event.DepositForfeited, "", "") {
		t.Errorf("%+v, the unit has verifier %s", m, g.s.Units[1].Verifier)
	}
	g.passAll()
	if u := g.s.Units[1]; u.Status != work.Accepted || len(u.Missing) > 0 || u.Lost > 0 {
		t.Errorf("after its audit: %+v", u)
	}
}

// Two workers that withhold their values from each other, and say that they wait for each other, are late. Those that
// wait for them are not, and the stages of the two go to others.
func TestWorkersThatWaitForEachOther(t *testing.T) {
	of := inStages()
	of.Pipeline.Flops = []uint64{1000, 1500, 500, 700}
	of.Pipeline.Links, of.Pipeline.Frames = nil, nil
	for s := range uint32(4) {
		for k := range uint32(4) {
			if s == k+1 || k == s+1 {
				of.Pipeline.Links = append(of.Pipeline.Links, link(s, k))
			}
		}
	}
	of.Pipeline.Frames = []uint64{4, 4, 4, 4, 4, 4}
	of.Units = 4
	g := begin(t, of, newMembers(6, 1))
	g.tick(1)
	workers := map[uint32]string{}
	for i, u := range g.s.Units {
		workers[uint32(i)] = u.Worker
	}
	says := func(of, unit uint32) error {
		return g.do(func(s State) (State, []event.Event, error) {
			return s.Missing(g.env(), workers[of], s.Units[unit].ID(s.Round), 0)
		})
	}
	if err := errors.Join(says(1, 2), says(2, 1), says(0, 1), says(3, 2)); err != nil {
		t.Fatal(err)
	}
	if err := says(1, 3); err == nil {
		t.Error("a stage waits for one that it has no link with")
	}
	g.tick(int(g.s.Units[0].Deadline-g.height) + 2)
	for stage, id := range workers {
		m, _ := g.s.Member(id)
		if late := stage == 1 || stage == 2; (m.Missed > 0) != late || late == (g.s.Units[stage].Worker == id) {
			t.Errorf("the worker of stage %d has missed %d deadlines, and the stage is of %s", stage, m.Missed,
				g.s.Units[stage].Worker)
		}
	}
	for _, stage := range []uint32{1, 2} {
		if w := g.s.Units[stage].Worker; w == workers[1] || w == workers[2] {
			t.Errorf("stage %d goes to an accomplice", stage)
		}
	}
	g.commitAll()
	g.tick(2)
	g.passAll()
	g.attestAll()
	for _, stage := range []uint32{1, 2} {
		if m, _ := g.s.Member(workers[stage]); m.Missed != 1 {
			t.Errorf("the round forgets that %s was late with a stage: %d", m.ID, m.Missed)
		}
	}
	if n := len(g.s.Active(crew.Worker)); n != 6 {
		t.Errorf("%d workers are left", n)
	}
}
