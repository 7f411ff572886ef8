package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// inStages are terms of two replicas of three stages, each of which exchanges values with the next.
func inStages() terms.Terms {
	t := newTerms()
	t.Units, t.UnitFlops = 6, 1500
	t.Pipeline.Flops = []uint64{1000, 1500, 500}
	for s := range uint32(2) {
		t.Pipeline.Links = append(t.Pipeline.Links, terms.Link{From: s, To: s + 1}, terms.Link{From: s + 1, To: s})
	}
	t.Pipeline.Frames = []uint64{4, 4, 4, 4}
	slices.SortFunc(t.Pipeline.Links, func(a, b terms.Link) int { return int(a.From*8+a.To) - int(b.From*8+b.To) })
	return t
}

// linked is a commitment with the heads of the links of a stage: of a link the same on both sides.
func linked(s State, c work.Commitment, unit uint32) work.Commitment {
	n := s.Terms.Pipeline.Stages()
	for _, l := range s.Terms.Pipeline.LinksOf(unit % n) {
		c.Links = append(c.Links, work.Exchanged{Frames: 4, Signature: []byte("signed"), Chain: canon.Sum("test/link",
			s.Base.Root[:], []byte(fmt.Sprint(unit/n, l)))})
	}
	c.HandedState = work.HandedState{Root: work.LinksRoot(c.Links), CID: "bafyrecord"}
	return c
}

// attempts are those of the units of a replica.
func (g *stage) attempts(replica int) (list []uint32) {
	for _, u := range g.s.Units[3*replica : 3*replica+3] {
		list = append(list, u.Attempt)
	}
	return list
}

func TestStagesOfAReplicaHaveOneAttempt(t *testing.T) {
	g := begin(t, inStages(), newMembers(6, 2))
	g.toAudits()
	workers := map[string]bool{}
	for _, u := range g.s.Units {
		workers[u.Worker] = true
	}
	if len(workers) != 6 {
		t.Fatalf("%d of 6 workers have a stage", len(workers))
	}
	g.phase(progress.Attest)
	liar, _ := g.dispute(1, true)
	if got := g.attempts(0); !slices.Equal(got, []uint32{1, 1, 1}) || g.s.Units[1].Worker == liar {
		t.Errorf("after a verdict the attempts are %v, and the stage is of %s", got, g.s.Units[1].Worker)
	}
	if got := g.attempts(1); !slices.Equal(got, []uint32{0, 0, 0}) || g.s.Units[4].Status == work.Assigned {
		t.Errorf("the other replica has attempts %v, and %v", got, g.s.Units[4].Status)
	}
	for _, k := range []int{0, 2} {
		if u := g.s.Units[k]; u.Status != work.Assigned || slices.Contains(u.Refused, u.Worker) {
			t.Errorf("stage %d does not begin again with its worker: %+v", k, u)
		}
	}
	g.phase(progress.Train)
	g.commitAll()
	g.tick(2)
	g.attestAll()
	if g.s.Round != 1 {
		t.Errorf("round %d, %v", g.s.Round, g.s.Phase)
	}
}

// A worker for which others wait is late, and no other.
func TestWhoIsWaitedForIsLate(t *testing.T) {
	g := begin(t, inStages(), newMembers(6, 2))
	g.tick(1)
	waits := func(of, unit uint32) error {
		return g.do(func(s State) (State, []event.Event, error) {
			return s.Missing(g.env(), s.Units[of].Worker, s.Units[unit].ID(s.Round), 0)
		})
	}
	for _, k := range []uint32{3, 4, 5} {
		g.commit(k)
	}
	late := g.s.Units[0].Worker
	if err := errors.Join(waits(2, 1), waits(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := waits(3, 0); err == nil {
		t.Error("a worker of another replica may say so")
	}
	if err := waits(1, 3); err == nil {
		t.Error("a worker may say that it waits for one that has committed")
	}
	g.tick(int(g.s.Units[0].Deadline-g.height) + 2)
	for _, id := range []string{late, g.s.Units[1].Worker, g.s.Units[2].Worker} {
		m, _ := g.s.Member(id)
		if want := map[bool]uint32{true: 1}[id == late]; uint32(m.Missed) != want {
			t.Errorf("%s has missed %d deadlines, wanted %d", id, m.Missed, want)
		}
	}
	if u := g.s.Units[0]; u.Worker == late || !slices.Equal(g.attempts(0), []uint32{1, 1, 1}) {
		t.Errorf("the stage is of %s, attempts %v", u.Worker, g.attempts(0))
	}
	if !slices.Equal(g.attempts(1), []uint32{0, 0, 0}) || g.s.Units[3].Status != work.Committed {
		t.Error("the replica that was in time begins again")
	}
}

// The two sides of a link commit to the same, or the second is refused.
func TestSidesOfALinkAgree(t *testing.T) {
	g := begin(t, inStages(), newMembers(6, 2))
	g.tick(1)
	g.commit(0)
	commit := func(spoil func(c *work.Commitment)) error {
		u := g.s.Units[1]
		return g.do(func(s State) (State, []event.Event, error) {
			c := linked(s, commitment(s.RoundState, 1), 1)
			spoil(&c)
			return s.Commit(g.env(), u.Worker, u.ID(s.Round), c)
		})
	}
	for name, spoil := range map[string]func(c *work.Commitment){
		"other head": func(c *work.Commitment) {
			c.Links[0].Chain = canon.Sum("other")
			c.HandedState.Root = work.LinksRoot(c.Links)
		},
		"other frames": func(c *work.Commitment) { c.Links[0].Frames++ },
		"no link":      func(c *work.Commitment) { c.Links = nil },
		"one link":     func(c *work.Commitment) { c.Links = c.Links[:1] },
		"other root":   func(c *work.Commitment) { c.HandedState.Root = canon.Sum("other") },
		"no record":    func(c *work.Commitment) { c.HandedState.CID = "" },
		"no signature": func(c *work.Commitment) { c.Links[2].Signature = nil },
		"a divergence without what was exchanged": func(c *work.Commitment) {
			c.Links, c.HandedState, c.Update, c.UpdateCID, c.Bytes = nil, work.HandedState{}, canon.Digest{}, "", 0
		},
	} {
		if err := commit(spoil); !errors.Is(err, refusal.ErrBadCommitment) {
			t.Errorf("%s: %v", name, err)
		}
	}
	diverged := linked(g.s, commitment(g.s.RoundState, 1), 1)
	diverged.Update, diverged.UpdateCID, diverged.Bytes = canon.Digest{}, "", 0
	if err := work.CheckCommitment(g.s.Terms, diverged, 0, 1); err != nil || !diverged.Diverged() {
		t.Errorf("a stage that diverged: %v", err)
	}
	g.tick(int(g.s.Units[1].Deadline - g.height))
	g.commit(2)
	g.tick(2) // the neighbour has committed in the last block of the time, and has kept its word from this one
	if err := commit(func(c *work.Commitment) {
		for i := range c.Links {
			c.Links[i].Signature = nil
		}
	}); err != nil {
		t.Error(err)
	}
}

// An accomplice of a worker that lied cannot void the commitments of that worker.
func TestNoFriendVoidsADispute(t *testing.T) {
	g := begin(t, inStages(), newMembers(6, 2))
	g.toAudits()
	for _, m := range g.s.Members {
		if m.ID != g.s.Units[2].Worker {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, s.Units[2].ID(s.Round), 0)
			})
		}
	}
	if got := g.attempts(0); !slices.Equal(got, []uint32{0, 0, 0}) {
		t.Errorf("an update that is withheld makes the replica begin again while it is audited: %v", got)
	}
	g.passAll()
	if got := g.attempts(0); !slices.Equal(got, []uint32{1, 1, 1}) {
		t.Errorf("after the audits the attempts are %v", got)
	}
	why := map[string]int{}
	for _, e := range g.events {
		if e.Kind == event.UnitReassigned {
			why[e.Why]++
		}
	}
	if len(why) != 2 || why[reason.Unavailable] != 1 || why[reason.Restarted] != 2 {
		t.Errorf("units begin again: %v", why)
	}
}

// Members that waited for a stage have not said that its update cannot be had: it comes late, and counts.
func TestWaitingIsNoReportOfAnUpdate(t *testing.T) {
	terms := inStages()
	terms.Units = 3
	g := begin(t, terms, newMembers(3, 1))
	g.tick(1)
	missing := func(from string) error {
		return g.do(func(s State) (State, []event.Event, error) {
			return s.Missing(g.env(), from, s.Units[1].ID(s.Round), 0)
		})
	}
	for _, k := range []uint32{0, 2} {
		if err := missing(g.s.Units[k].Worker); err != nil {
			t.Fatal(err)
		}
	}
	late := g.s.Units[1].Worker
	g.commitAll()
	g.tick(2)
	g.passAll()
	if m, _ := g.s.Member(late); m.Missed > 0 || g.s.Units[1].Attempt > 0 || len(g.s.Units[1].Missing) > 0 {
		t.Errorf("the stage that came late has missed %d deadlines, and begins again: %+v", m.Missed, g.s.Units[1])
	}
	if err := missing(g.s.Units[0].Worker); err != nil {
		t.Errorf("a member that has waited cannot report an update: %v", err)
	}
}

// A worker with two stages of a replica forfeits both with a verdict about one: no verifier is asked for the other.
func TestAllStagesOfALiarAreForfeited(t *testing.T) {
	terms := inStages()
	terms.Units = 3
	g := begin(t, terms, newMembers(2, 2))
	g.toAudits()
	if g.s.Units[0].Worker != g.s.Units[2].Worker {
		t.Fatal("no worker has two stages")
	}
	g.dispute(0, true)
	if n := len(g.s.RolledBack); n != 1 {
		t.Fatalf("%d rounds with void commitments", n)
	}
	if u := g.s.RolledBack[0].Units[2]; u.Status != work.Accepted {
		t.Errorf("the other stage of the liar is open: %+v", u)
	}
	if u := g.s.RolledBack[0].Units[1]; u.Status == work.Accepted || u.Status == work.Assigned {
		t.Errorf("the stage of the other is not audited: %+v", u)
	}
}
