package sim

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/rollouts"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/check"
)

// Generators draw, and learn nothing. They are paid their own price, those that learn theirs, and the run leads to the
// state root that the job determines. A generator that forges answers is convicted, and one that joins draws, too.
func TestGenerators(t *testing.T) {
	const asked = 4 * price
	const last = "worker-4"
	for _, s := range []struct {
		name    string
		acts    map[string]adversary.Attack
		joins   bool
		slashed []string
	}{
		{name: "all are honest, and one joins", joins: true},
		{name: "one forges", acts: one(last, rollouts.Forges{How: rollouts.OtherPolicy}), slashed: []string{last}},
		{name: "one computes wrongly", acts: one(last, adversary.Lies{}), slashed: []string{last}},
	} {
		t.Run(s.name, func(t *testing.T) {
			size := apart
			size.Rounds = 8
			c := sized(t, size)
			c.Workers, c.Generators, c.MaxBlocks, c.Acts = 5, 2, 3000, s.acts
			c.Machines = map[string]Machine{"worker-3": {Link: c.Link, Unit: c.Unit, Price: asked / 2},
				last: {Link: c.Link, Unit: c.Unit, Price: asked}}
			o := c.order()
			o.PriceCap = 2 * asked
			if s.joins {
				c.Joins = []Newcomer{{Name: "late", Role: crew.Generator, At: 20 * time.Second}}
				c.Machines["late"] = Machine{Link: c.Link, Unit: c.Unit, Price: asked}
				o.Workers.Max, o.Generators = 6, 3
			}
			c.Order = &o
			draws := map[string]bool{"worker-3": true, last: true, "late": true}
			w := must(New(c, check.CoinsConserved{}, &check.PaidOnce{Guilty: s.slashed, Away: c.Away()},
				check.HonestNotSlashed{Guilty: s.slashed}, &check.Lineage{Honest: true}))(t)
			must(w.Play())(t)
			end := must(w.Outcome())(t)
			if end.Phase != progress.Done || !end.Honest || end.Rounds != size.Rounds {
				t.Errorf("the run ends in phase %d after %d rounds: %s, honest: %v", end.Phase, end.Rounds, end.Why, end.Honest)
			}
			if got := slices.Sorted(maps.Keys(end.Slashed)); !slices.Equal(got, s.slashed) {
				t.Errorf("slashed: %v, want %v", got, s.slashed)
			}
			paid := map[string]int{}
			for _, r := range must(w.Receipts())(t) {
				name := w.Name(r.Who)
				if r.Kind != reward.Work {
					continue
				}
				if draws[name] && r.Unit < size.Units {
					t.Errorf("%s has unit %d, which learns", name, r.Unit)
				}
				if r.Amount == 0 {
					continue
				}
				paid[name]++
				want, class := uint64(price), crew.Worker
				if draws[name] {
					want, class = asked, crew.Generator
				}
				if r.Price != want || r.Role != class {
					t.Errorf("%s is paid at %d as a %s: %+v", name, r.Price, r.Role, r)
				}
			}
			if s.joins && paid["late"] == 0 || len(s.slashed) == 0 && (paid["worker-3"] == 0 || paid[last] == 0) {
				t.Errorf("units paid: %v", paid)
			}
		})
	}
}

// An order that takes generators begins without any, if workers that learn fill its seats, and one of the version
// before takes none.
func TestOrdersWithoutGenerators(t *testing.T) {
	c := sized(t, apart)
	c.Workers, c.Generators, c.MaxBlocks = 4, 1, 3000
	o := c.order()
	o.Generators, o.Workers = 0, market.Workers{Min: 3, Target: 4, Max: 4}
	c.Order = &o
	w := must(New(c, check.CoinsConserved{}))(t)
	must(w.Play())(t)
	for _, r := range must(w.Receipts())(t) {
		if w.Name(r.Who) == "worker-3" {
			t.Errorf("a generator has a seat: %+v", r)
		}
	}
	if s := must(w.State())(t); s.Phase != progress.Done {
		t.Errorf("the run ends in phase %s", s.Phase)
	}
	c.Generators = 0
	o.Generators, o.Workers = 2, market.Workers{Min: 4, Target: 4, Max: 4}
	if end := played(t, c, check.CoinsConserved{}); end.Phase != progress.Done {
		t.Errorf("without offers of generators the run ends in phase %s: %s", end.Phase, end.Why)
	}
}

// A machine that draws alone needs less memory than one that learns: it has no gradients, and no state of a unit.
func TestGeneratorsNeedLessMemory(t *testing.T) {
	c, store := sized(t, apart), blob.NewMemory()
	terms := c.Terms()
	var err error
	terms.SpecCID, _, terms.Genesis, err = bundle.Ship(t.Context(), store, c.Job.ID(), c.Job.Task, c.Job.Genesis, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := bundle.ReadJob(t.Context(), terms, func(ctx context.Context, cid string, _ int64) ([]byte, error) {
		c, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return store.Get(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if draw, learn := j.DrawingMemory(1), j.Memory(1); draw <= 0 || draw+draw/20 > learn {
		t.Errorf("%d bytes to draw, %d to learn", draw, learn)
	} else {
		t.Logf("%d bytes to draw, %d to learn", draw, learn)
	}
}
