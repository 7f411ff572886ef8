package party

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// far is the update of a worker in another place that a member, of "bob" and "me", fetches for both.
func far(by string) (update []byte, unit *work.Unit) {
	for i := 0; ; i++ {
		update = fmt.Appendf(nil, "update %d", i)
		if cid := blob.Of(update).String(); relay([]string{"bob", "me"}, cid) == by {
			return update, &work.Unit{Worker: "ann", Commit: work.Commitment{UpdateCID: cid}}
		}
	}
}

// members is a run of ann, bob and me.
func members() (s run.State) {
	for _, id := range []string{"ann", "bob", "me"} {
		s.Members = append(s.Members, crew.Member{ID: id, Role: crew.Worker, Active: true})
	}
	return s
}

// An update from another place is fetched from the member nearby that fetches it for all, or else from its worker. A
// member that did not have one is not asked again.
func TestUpdatesComeFromNearby(t *testing.T) {
	theirs, one := far("bob")
	mine, two := far("me")
	places := map[string]string{"ann": "us", "bob": "eu", "me": "eu"}
	for _, c := range []struct {
		name   string
		places map[string]string
		slices uint32
		serve  map[string][]byte
		unit   *work.Unit
		asked  []string // by two rounds
	}{
		{"bob has it", places, 0, map[string][]byte{"bob": theirs}, one, []string{"bob", "bob"}},
		{"bob lacks it", places, 0, map[string][]byte{"ann": theirs}, one, []string{"bob", "ann", "ann"}},
		{"the party fetches it for bob", places, 0, map[string][]byte{"ann": mine}, two, []string{"ann", "ann"}},
		{"slices", places, 4, map[string][]byte{"ann": theirs}, one, []string{"ann", "ann"}},
		{"one place", map[string]string{"ann": "eu", "bob": "eu", "me": "eu"}, 0, map[string][]byte{"ann": theirs}, one,
			[]string{"ann", "ann"}},
		{"no place", nil, 0, map[string][]byte{"ann": theirs}, one, []string{"ann", "ann"}},
		{"nobody here", map[string]string{"me": "asia"}, 0, map[string][]byte{"ann": theirs}, one, []string{"ann", "ann"}},
	} {
		w := &wire{members: []string{"ann", "bob"}, serve: c.serve, places: c.places}
		p := &Executor{ID: "me", Lineage: lineage{}, Chain: w, Blobs: w}
		s := members()
		s.Terms.Slices = c.slices
		p.neighbours.follow(s)
		for range 2 {
			if f, failed := p.Perform(t.Context(), role.Advance{Units: work.Units{c.unit}}).(role.Failed); failed {
				t.Errorf("%s: %v", c.name, f.Err)
			}
		}
		if !slices.Equal(w.asked, c.asked) || len(w.sent) > 0 {
			t.Errorf("%s: asked %v, wanted %v; sent %v", c.name, w.asked, c.asked, w.sent)
		}
	}
}

// A member fetches what others wait for before it waits for others: two that wait for each other, with one fetch at a
// time, would both lose the time of a failure.
func TestNobodyWaitsBeforeItServes(t *testing.T) {
	theirs, one := far("bob")
	_, two := far("me")
	w := &wire{members: []string{"ann", "bob"}, serve: map[string][]byte{"bob": theirs},
		places: map[string]string{"ann": "us", "bob": "eu", "me": "eu"}}
	p := &Executor{ID: "me", Lineage: lineage{}, Chain: w, Blobs: w}
	p.neighbours.follow(members())
	for _, units := range []work.Units{{one, two}, {two, one}} {
		w.asked = nil
		p.updates(t.Context(), t.Context(), units, relays(t.Context(), p, units))
		if want := []string{"ann", "ann", "bob", "bob"}; !slices.Equal(w.asked, want) { // ann, and then all holders
			t.Errorf("asked %v, wanted %v", w.asked, want)
		}
	}
}

// A member that lacks one update of a round is asked for no other.
func TestAMemberThatLacksAnUpdateIsLeftAlone(t *testing.T) {
	_, one := far("bob")
	w := &wire{places: map[string]string{"ann": "us", "bob": "eu", "me": "eu"}}
	p := &Executor{ID: "me", Lineage: lineage{}, Chain: w, Blobs: w}
	p.neighbours.follow(members())
	p.updates(t.Context(), t.Context(), work.Units{one, one, one}, []string{"bob", "bob", "bob"})
	if n := len(slices.DeleteFunc(w.asked, func(who string) bool { return who != "bob" })); n != 1 {
		t.Errorf("bob was asked %d times", n)
	}
}

// Each of several members fetches as many updates for the others as any other, and all agree who fetches which.
func TestRelaysShareTheWork(t *testing.T) {
	near := []string{"a", "b", "c", "d"}
	fetched := map[string]int{}
	for i := range 4000 {
		cid := fmt.Sprint("cid", i)
		by := relay(near, cid)
		fetched[by]++
		slices.Reverse(near)
		if again := relay(near, cid); again != by {
			t.Fatalf("%s and %s fetch %s", by, again, cid)
		}
	}
	for id, n := range fetched {
		if n < 850 || n > 1150 {
			t.Errorf("%s fetches %d of 4000", id, n)
		}
	}
}

// noneAtOnce fetches nothing at the same time.
type noneAtOnce struct {
	*wire
	t *testing.T
}

func (n noneAtOnce) Each(int, func(int)) { n.t.Error("updates of stages are fetched at the same time") }

// Updates of stages are fetched one after the other, and read again as they are combined: a member has the memory of
// one stage. The first that cannot be had is reported.
func TestUpdatesOfStagesAreFetchedInTurn(t *testing.T) {
	update := []byte("update")
	unit := &work.Unit{Worker: "ann", Commit: work.Commitment{UpdateCID: blob.Of(update).String()}}
	gone := &work.Unit{Index: 1, Worker: "bob", Commit: work.Commitment{UpdateCID: blob.Of([]byte("gone")).String()}}
	w := &wire{serve: map[string][]byte{"ann": update}}
	p := &Executor{ID: "me", Lineage: lineage{}, Chain: w, Blobs: noneAtOnce{w, t}}
	s := members()
	s.Terms.Pipeline.Flops = []uint64{1, 1}
	p.neighbours.follow(s)
	if e, ok := p.Perform(t.Context(), role.Advance{Units: work.Units{unit, unit}}).(role.Advanced); !ok {
		t.Errorf("got %+v", e)
	}
	if want := []string{"ann", "ann", "ann", "ann"}; !slices.Equal(w.asked, want) {
		t.Errorf("asked %v, wanted %v", w.asked, want)
	}
	f, failed := p.Perform(t.Context(), role.Advance{Units: work.Units{unit, gone}}).(role.Failed)
	if !failed || len(w.sent) != 1 || w.sent[0] != (role.Missing{Work: work.UnitID{Unit: 1}}) {
		t.Errorf("an update that cannot be had: %v; sent %+v", f.Err, w.sent)
	}
}
