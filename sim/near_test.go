package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Of eight workers in two regions each update crosses the border once. A member that its neighbours cannot reach costs
// them one wait each: no member leaves or loses stake, and the model is the same.
func TestUpdatesCrossABorderOnce(t *testing.T) {
	job, err := workload.New(workload.Size{Rounds: 6, Units: 8, Steps: 2, Segment: 1})
	if err != nil {
		t.Fatal(err)
	}
	far := map[string]uint64{}
	for _, name := range []string{"undeclared", "declared", "undeclared, cut off", "declared, cut off"} {
		c := Config{Seed: 3, Job: job, Workers: 8, Verifiers: 2, Validators: 1, MaxBlocks: 5000, Unit: 2 * time.Second,
			Link: link.Profiles["home"], Machines: map[string]Machine{}, OrderAt: 5 * time.Second}.Usual()
		for i, who := range c.Names() {
			m := Machine{Link: c.Link, Unit: c.Unit, Place: fmt.Sprint("region-", i%2)}
			if strings.HasPrefix(name, "declared") {
				m.Hardware = registry.Hardware{Region: m.Place}
			}
			c.Machines[who] = m
			if strings.HasSuffix(name, "cut off") && i > 0 && i%2 == 0 {
				c.Faults = append(c.Faults, Fault{At: 0, For: time.Hour, Who: "worker-0", From: who})
			}
		}
		w, err := New(c, check.CoinsConserved{}, check.HonestNotSlashed{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Play(); err != nil {
			t.Fatal(err)
		}
		o, err := w.Outcome()
		if err != nil {
			t.Fatal(err)
		}
		if o.Phase != progress.Done || !o.Honest || len(o.Out) > 0 || len(o.Slashed) > 0 {
			t.Errorf("%s: %+v", name, o)
		}
		for _, who := range c.Names() {
			far[name] += w.Usage(who).Far
		}
		t.Logf("%s: %d bytes from the other region, %d blocks", name, far[name], o.Blocks)
	}
	// ten members in two places: 8*5 fetches of updates from the other place in a round, with relays 8
	if 4*far["declared"] > far["undeclared"] {
		t.Errorf("%d bytes from the other region, %d where none is declared", far["declared"], far["undeclared"])
	}
}
