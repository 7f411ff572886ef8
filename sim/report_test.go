package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/reporter"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/ledger"
	"github.com/starling-network/starling/sim/link"
)

// brief gives a chain short epochs from its first block on.
func brief(doc *cmttypes.GenesisDoc) error {
	p := rules()
	p.Witnesses = registry.DefaultParams().Witnesses
	return ledger.SetParams(doc, chainregistry.Name, p)
}

// Six machines promise the same upload. The reports of the others acknowledge the bytes of every worker, and the one
// with a much narrower line gets a receipt that says so. One false report about a fast peer changes nothing. A worker
// that most others defame gets the same receipt, and loses neither stake nor pay.
func TestReports(t *testing.T) {
	const defamed, narrow = "worker-0", "worker-3"
	for name, c := range map[string]struct {
		liars, told []string
	}{
		"one lies": {[]string{"worker-2"}, []string{narrow}},
		"most lie": {[]string{"worker-1", "worker-2", "verifier-0"}, []string{defamed, narrow}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(c.liars) > 1 {
				onlyLong(t)
			}
			lies := 0
			w := reporting(t, defamed, narrow, c.liars, func(line string) {
				if strings.Contains(line, " reports ") && strings.HasSuffix(line, keyOf(defamed).Address()+" <nil>") &&
					slices.ContainsFunc(c.liars, func(liar string) bool { return strings.Contains(line, " "+liar+" ") }) {
					lies++
				}
			})
			if lies < len(c.liars) {
				t.Errorf("%d lies were told by %d", lies, len(c.liars))
			}
			var told []string
			for _, who := range w.config.Names() {
				acknowledged := false
				for _, r := range must(w.Chain().Reward.Earnings(t.Context(), keyOf(who).Address()))(t) {
					switch {
					case r.Kind == reward.Slash:
						t.Errorf("%s: %s", who, reward.Explain(r))
					case r.Kind != reward.Bandwidth:
					case r.Reason == reward.Throttled && !strings.Contains(reward.Explain(r), "less than half of the upload that "+
						"it promises"):
						t.Errorf("%s: %s", who, reward.Explain(r))
					case r.Reason == reward.Throttled && !slices.Contains(told, who):
						told = append(told, who)
					}
					acknowledged = acknowledged || r.Kind == reward.Bandwidth
				}
				if strings.HasPrefix(who, "worker") && !acknowledged {
					t.Errorf("no peer acknowledges the bytes of %s", who)
				}
			}
			if !slices.Equal(told, c.told) {
				t.Errorf("told are %v, want %v", told, c.told)
			}
		})
	}
}

// reporting plays a run until the first whole epoch is over.
func reporting(t *testing.T, defamed, narrow string, liars []string, log func(line string)) *Network {
	c := churning(t)
	c.Genesis, c.Registers, c.Log = brief, true, log
	c.Machines, c.Acts = map[string]Machine{}, map[string]adversary.Attack{}
	for _, name := range c.Names() {
		m := Machine{
			Link: link.Link{Latency: 20 * time.Millisecond, Up: 1e6, Down: 1e6}, Unit: 7 * time.Second,
			Tier: registry.Bronze, Hardware: registry.Hardware{Memory: 8 << 10, Upload: 8000},
		}
		if name == narrow {
			m.Link.Up /= 50
		}
		c.Machines[name] = m
	}
	for _, name := range liars {
		c.Acts[name] = defames{Peer: keyOf(defamed).Address()}
	}
	settled := 2 * rules().EpochBlocks
	w := must(New(c, check.CoinsConserved{}, &check.Lineage{Honest: true}, ending(settled)))(t)
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	if w.Height() < settled {
		t.Fatalf("the run is over after %d blocks", w.Height())
	}
	return w
}

// ending is the height at which a world ends.
type ending int64

// Block implements Checker.
func (e ending) Block(v check.World) error {
	w := v.(*Network)
	w.over = w.over || w.Height() >= int64(e)
	return nil
}

// End implements Checker.
func (ending) End(check.World) error { return nil }

// report lets one worker say what it got from the other, much more than it can have.
func (e *economy) report() bool {
	s, _ := e.run()
	if s.Round < 1 {
		return false
	}
	e.let(liar, func(ctx context.Context, c client.Member) error {
		return c.Reward.ReportPeer(ctx, e.first.ID(), keyOf(slowOne).Address(),
			registry.Link{Bytes: 1 << 40, Millis: 1 << 30, RTT: 25})
	})
	return true
}

// reported finds what was said, as much of it as counts, among the links of the run, which are all of the network, and
// of no other run.
func (e *economy) reported() bool {
	ctx, c := e.t.Context(), e.w.Chain()
	links := must(c.Reward.Links(ctx, e.first.ID()))(e.t)
	i := slices.IndexFunc(links, func(l registry.Measured) bool {
		return l.Of == keyOf(slowOne).Address() && l.By == keyOf(liar).Address() && l.RTT == 25
	})
	if i < 0 {
		return false
	}
	if l := links[i]; l.Bytes == 0 || l.Bytes >= 1<<40 || l.Timed != l.Bytes || l.Rate() == 0 {
		e.t.Errorf("%+v", l)
	}
	if all := must(c.Reward.Links(ctx, ""))(e.t); !slices.Equal(all, links) {
		e.t.Errorf("of all %+v, of the run %+v", all, links)
	}
	if _, err := c.Reward.Links(ctx, "job-0"); !errors.Is(err, client.ErrNotFound) {
		e.t.Errorf("of a run that is not: %v", err)
	}
	return true
}

// defames is a member that says of one other, and of no third, that it gave almost nothing.
type defames struct{ Peer string }

// Install implements adversary.Attack.
func (defames) Install(c adversary.Setup) adversary.Step { return c.Step }

// Report implements adversary.Reports.
func (a defames) Report(r reporter.Report) reporter.Report {
	if r.Peer == a.Peer {
		r.Link.Millis = registry.MaxReport
	}
	return r
}
