package forecast

import (
	"testing"
	"time"

	"github.com/starling-network/starling/sim/link"
)

func course() RunModel {
	return RunModel{
		Round: Round{Workers: 4, Verifiers: 1, Update: 1000, Link: link.Link{Up: 100, Down: 100, Latency: time.Second / 10},
			Block: time.Second},
		Units:  []time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second},
		Check:  20 * time.Second,
		Rounds: 10, Job: 100, Audited: 1, Window: 4, Challenge: 5,
	}
}

// Without audits a run is its start and its rounds.
func TestForecastIsTheSumOfItsRounds(t *testing.T) {
	c := course()
	f := c.Forecast()
	if f.Inner != 20*time.Second || f.Exchange != 40*time.Second || f.Audits != 0 ||
		f.Total != f.Start+10*(f.Inner+f.Exchange+f.Chain) {
		t.Errorf("%+v", f)
	}
	c.Round.Sliced = 2000
	if s := c.Forecast(); s.Exchange != 20*time.Second || s.Chain <= f.Chain {
		t.Errorf("in slices: %+v", s)
	}
	c.Round.Link.Loss = 0.1
	if l := c.Forecast(); l.Chain <= f.Chain+time.Second {
		t.Errorf("with losses: %+v", l)
	}
}

// A worker that is four times as fast gets four units for one, as in a run: of ten rounds, in which the slow ones are
// due 0.4 units each, three wait for a unit of both.
func TestForecastDealsBySpeed(t *testing.T) {
	c := course()
	c.Units = []time.Duration{10 * time.Second, 10 * time.Second, 40 * time.Second, 40 * time.Second}
	if f := c.Forecast(); f.Inner != 26*time.Second {
		t.Errorf("%+v", f)
	}
}

// Where rounds overlap, the shorter one of units and exchange is not waited for, but at the end of a group.
func TestForecastOfOverlap(t *testing.T) {
	c := course()
	c.Carry, c.Window, c.Challenge = 5, 10, 1
	alone := c.Forecast()
	c.Overlap = true
	both := c.Forecast()
	if saved := alone.Total - both.Total; saved < 8*19*time.Second || saved > 8*21*time.Second || both.Audits != 0 {
		t.Errorf("saves %v of 10 rounds with 20 s of units and 40 s of exchange: %+v", saved, both)
	}
	c.Updates = []int64{250, 250, 250, 250, 1000} // of fragments, whose exchange is shorter than the units
	if fragments := c.Forecast(); fragments.Total > both.Total-8*10*time.Second ||
		fragments.Total < c.Round.Overhead()+10*20*time.Second {
		t.Errorf("fragments %+v, whole updates %+v", fragments, both)
	}
	c.Updates, c.AuditPPM = nil, 1_000_000
	if audited := c.Forecast(); audited.Total < both.Total || audited.Audits != audited.Total-both.Total {
		t.Errorf("with audits %+v, without %+v", audited, both)
	}
}

// Training waits for audits that one verifier cannot keep up with, and less where more rounds may be open, more
// verifiers are there, or less of a unit is executed.
func TestForecastWaitsForAudits(t *testing.T) {
	c := course()
	c.Round.Update, c.AuditPPM, c.Rounds = 1, 1_000_000, 3000
	one := c.Forecast()
	if round := one.Total / 3000; round < 79*time.Second || round > 81*time.Second {
		t.Errorf("a round takes %v where four audits take 80 s", round)
	}
	for name, spare := range map[string]func(*RunModel){
		"verifiers": func(c *RunModel) { c.Round.Verifiers = 4 }, "segments": func(c *RunModel) { c.Audited = 0.5 },
		"a lower rate": func(c *RunModel) { c.AuditPPM = 100_000 }, "a window": func(c *RunModel) {
			c.Window, c.Rounds = 16,
				16
		},
	} {
		c := c
		if spare(&c); c.Forecast().Audits >= one.Audits {
			t.Errorf("%s: %+v", name, c.Forecast())
		}
	}
	c.Carry, c.Window = 8, 16
	if f := c.Forecast(); f.Total < one.Total-time.Hour {
		t.Errorf("rounds that become final together: %+v", f)
	}
}
