package strategies

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/transfer"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Machines of the speeds of Liu et al. 2024, and the rounds that units are made to measure in.
// of a step
var unequal = []time.Duration{580 * time.Millisecond, 750 * time.Millisecond, 1510 * time.Millisecond,
	3330 * time.Millisecond}

const (
	measuredSteps = 200 // of the fastest in a round; a tenth of them is trained
	measuredGroup = 8   // rounds
	unmeasured    = 2   // of them, in which machines may count the same still, which they do until they are measured
)

// unequalSpeeds plays asynchronous DiLoCo on them under virtual time, with the protocol and the roles as they are, and
// returns the steps that they take, of those that they could without waiting for one another.
func unequalSpeeds(ctx context.Context) (float64, error) {
	const steps = measuredSteps / 10
	paces, together := make([]float64, len(unequal)), 0.0 // together: steps a second
	for i, t := range unequal {
		paces[i] = unequal[0].Seconds() / t.Seconds()
		together += 1 / t.Seconds()
	}
	sizes, _ := outer.Sizes(steps, paces)
	largest := sizes[0]
	j, err := workload.New(workload.Size{Rounds: measuredGroup, Units: uint32(len(unequal)), Steps: steps,
		Segment: steps / largest, Carry: measuredGroup, Moments: true, Sizes: sizes})
	if err != nil {
		return 0, err
	}
	link := link.Link{Latency: 50 * time.Millisecond, Up: 1e6, Down: 1e6}
	c := sim.Config{
		Seed: 1, Job: j, Workers: len(unequal), Verifiers: 1, Validators: 1, BlockTime: time.Second, Deadline: 1000,
		Link: link, Machines: map[string]sim.Machine{}, MaxBlocks: 1 << 13,
	}
	for i, t := range unequal {
		c.Machines["worker-"+strconv.Itoa(len(unequal)-1-i)] = sim.Machine{Link: link, Unit: measuredSteps * t}
	}
	o := &transfer.Pacer{Ctx: ctx}
	w, err := sim.New(c, o)
	if err != nil {
		return 0, err
	}
	o.Network = w
	if _, err := w.Play(); err != nil {
		return 0, err
	}
	if len(o.Ends) != measuredGroup {
		return 0, fmt.Errorf("benchmark: %d of %d rounds of machines of different speeds were attested", len(o.Ends),
			measuredGroup)
	}
	var done float64 // steps of a round
	for _, n := range sizes {
		done += measuredSteps * float64(n) / float64(largest)
	}
	took := o.Ends[measuredGroup-1].At - o.Ends[unmeasured-1].At
	return benchmark.Rounded(done*(measuredGroup-unmeasured)/(together*took.Seconds()), 4), nil
}
