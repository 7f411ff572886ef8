package sim

import (
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/sim/check"
)

// islander is cut off from the chain and from everybody when it trains a unit of a round, until something is so.
type islander struct {
	round uint32
	until func(s run.State, was work.Unit) bool
	was   work.Unit // the unit, when it was cut off
	mends int64     // height
}

// Block implements Checker.
func (i *islander) Block(v check.World) error {
	w := v.(*Network)
	s, err := w.State()
	if err != nil || i.mends > 0 {
		return nil // it has not begun, or is over
	}
	for _, u := range s.Work(w.ID(w1)) {
		if i.was.Worker == "" && s.Round == i.round {
			i.was = u
			i.sever(w, 1)
		}
	}
	if i.was.Worker != "" && i.until(s, i.was) {
		i.mends = w.Height()
		i.sever(w, -1)
	}
	return nil
}

// sever cuts the worker off, or ends that with -1.
func (i *islander) sever(w *Network, by int) {
	w.cuts[between(w1, Chain)] += by
	for _, p := range w.parties {
		if p.name != w1 {
			w.cuts[between(w1, p.name)] += by
		}
	}
}

// End implements Checker.
func (i *islander) End(check.World) error { return nil }

// receipts of the unit for work, by name: what was paid, and the reasons.
func (i *islander) receipts(t *testing.T, w *Network) map[string][]string {
	t.Helper()
	all, err := w.Receipts()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, r := range all {
		if r.Kind == reward.Work && r.Round == i.round && r.Unit == i.was.Index {
			if (r.Amount > 0) != (r.Reason == reward.Verified) {
				t.Errorf("%+v", r)
			}
			name := w.Name(r.Who)
			found[name] = append(found[name], r.Reason)
		}
	}
	return found
}

// A worker that was on the other side of a partition commits what it did there. If no other worker has committed to the
// unit in its round, the late work counts, and the receipt of the replacement says why it is not paid. After the round
// it does not count. The model is the same.
func TestLateWork(t *testing.T) {
	onlyLong(t)
	play := func(t *testing.T, until func(s run.State, was work.Unit) bool) (*Network, *islander) {
		c := churning(t)
		c.Unit, c.Deadline, c.MaxBlocks = 10*time.Second, 60, 3000
		if testing.Verbose() {
			c.Log = func(line string) { t.Log(line) }
		}
		i := &islander{round: 3, until: until}
		w, err := New(c, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{}, &check.Lineage{Honest: true}, i)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Play(); err != nil {
			t.Fatal(err)
		}
		if s, err := w.State(); err != nil || s.Phase != progress.Done || i.mends == 0 {
			t.Fatalf("the run ends in phase %d: %v; the partition ends in block %d", s.Phase, err, i.mends)
		}
		return w, i
	}
	t.Run("the partition heals within the round", func(t *testing.T) {
		w, i := play(t, func(s run.State, was work.Unit) bool { return s.Units[was.Index].Worker != was.Worker })
		got := i.receipts(t, w)
		if mine := got[w1]; len(mine) != 2 || mine[0] != reward.MissedDeadline || mine[1] != reward.Verified {
			t.Errorf("%s: %v", w1, mine)
		}
		for name, reasons := range got {
			if name != w1 && (len(reasons) != 1 || reasons[0] != reward.Overtaken) {
				t.Errorf("%s: %v", name, reasons)
			}
		}
		if len(got) != 2 {
			t.Errorf("receipts of %d workers", len(got))
		}
	})
	t.Run("the partition heals after the round", func(t *testing.T) {
		w, i := play(t, func(s run.State, was work.Unit) bool { return s.Round > 3 })
		got := i.receipts(t, w)
		if mine := got[w1]; len(mine) != 1 || mine[0] != reward.MissedDeadline {
			t.Errorf("%s: %v", w1, mine)
		}
		if len(got) != 2 {
			t.Errorf("receipts of %d workers", len(got))
		}
		o, err := w.Outcome()
		if err != nil || o.Earned[w1] == 0 {
			t.Errorf("%v: %+v", err, o)
		}
	})
}

// A worker that dies with its first unit delays the others no longer than the pace of the others says, however generous
// the terms are.
func TestFirstUnitOfTheDead(t *testing.T) {
	c := churning(t)
	c.Deadline, c.MaxBlocks = 600, 1500
	c.Faults = []Fault{{At: 6 * time.Second, For: time.Hour, Who: w1}}
	o := played(t, c, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{}, &check.Lineage{Honest: true})
	if o.Phase != progress.Done {
		t.Fatalf("%+v", o)
	}
	if o.Earned[w1] > 0 {
		t.Fatal("nothing to see: it has done its first unit")
	}
	if o.Blocks > c.Deadline {
		t.Errorf("the run takes %d blocks, with a first deadline of %d", o.Blocks, c.Deadline)
	}
}
