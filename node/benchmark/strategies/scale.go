package strategies

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/scale"
)

// The crowd that is played for the scale of a simulation: workers and rounds of which the time is given, runs of
// sixteen workers, and audits at a twentieth of the units.
const (
	crowdWorkers = 10_000
	crowdRounds  = 1000
)

// ScaleRow is the cost of simulating many workers on this machine.
type ScaleRow struct {
	Workers   int     `json:"workers"`
	Runs      int     `json:"runs"`
	Rounds    int     `json:"rounds"`       // that were played
	Seconds   float64 `json:"seconds"`      // that they took
	Processor float64 `json:"processor_us"` // processor time for a worker and a round, in microseconds
	GiB       float64 `json:"gib"`          // the most memory of the process
}

// addScaleRow plays the given number of rounds of modelled workers, and reports the time of all of them. Every block
// takes about as long, and a run has some blocks after its last round, in which it waits for challenges.
func (r *Result) addScaleRow(ctx context.Context, rounds int) error {
	// little memory is in use, and collecting it takes more than half of the time
	defer debug.SetGCPercent(max(100, debug.SetGCPercent(1000)))
	before, _ := benchmark.Usage()
	begin := time.Now()
	const block = 5 * time.Second
	c, err := scale.Model{
		Seed: 1, Workers: crowdWorkers, Run: 16, Verifiers: 1, Rounds: uint32(rounds), AuditPPM: 50_000, Block: block,
		Link: link.Link{Latency: 50 * time.Millisecond, Up: 12.5e6, Down: 12.5e6}, Update: 100_000, Unit: 10 * time.Second,
	}.Play(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	after, peak := benchmark.Usage()
	blocks := c.Round.Seconds() / block.Seconds() // of a round
	share := min(1, blocks*float64(rounds)/float64(c.Blocks))
	r.ScaleModel = &ScaleRow{
		Workers: crowdWorkers, Runs: c.Runs, Rounds: rounds, Seconds: benchmark.Rounded(took, 1),
		Processor: benchmark.Rounded(share*(after-before).Seconds()*1e6/float64(rounds)/crowdWorkers, 1),
		GiB:       benchmark.Rounded(float64(peak)/1024, 2),
	}
	r.Bars = append(r.Bars,
		benchmark.Below(fmt.Sprintf("seconds to simulate %d rounds of %d modelled workers (from %d rounds)", crowdRounds,
			crowdWorkers,
			rounds), took/float64(c.Blocks)*(blocks*crowdRounds+float64(c.Blocks)-blocks*float64(rounds)), 300),
		benchmark.Below("GiB of memory meanwhile, with the memory that this command used before", r.ScaleModel.GiB, 8),
	)
	return nil
}
