package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/reward"
)

// OverheadOptions configure a measurement of the cost of audits.
type OverheadOptions struct {
	Load    func(overrides ...string) (*job.Job, error) // the job, with settings as of --set
	Audited float64                                     // part of the units that is audited at the floor of the rate
	// rounds that do not count: in them workers make themselves a history
	WarmUp int
	Repeat int    // runs of each kind, alternating
	Dir    string // for their output; its contents are removed
}

// Overhead is what audits add to the time of an honest run on one machine.
type Overhead struct {
	Rounds  int       `json:"rounds"`  // that count
	Drawn   []int     `json:"drawn"`   // audits of the rounds that count, of each run with audits
	With    []float64 `json:"with"`    // seconds of the rounds that count, of each run with audits
	Without []float64 `json:"without"` // and of each without
}

// Ratio is the least time with audits over the least without.
func (o Overhead) Ratio() float64 {
	least := func(all []float64) float64 {
		low := all[0]
		for _, s := range all {
			low = min(low, s)
		}
		return low
	}
	return least(o.With) / least(o.Without)
}

// MeasureOverhead trains a job on an embedded network with audits and without, alternating, and compares the times of
// the rounds after the warm-up. Audits run on the machine that trains, so that they cost what they compute. Audits of
// the last rounds, at most the window, end after the measured time.
func MeasureOverhead(ctx context.Context, opt OverheadOptions) (*Overhead, error) {
	if opt.Repeat < 1 || opt.WarmUp < 0 || opt.Audited <= 0 || opt.Audited > 1 {
		return nil, fmt.Errorf("overhead: %v audits over %d runs after %d rounds: wanted a part up to 1, a "+
			"run and no negative number", opt.Audited, opt.Repeat, opt.WarmUp)
	}
	o := &Overhead{}
	for range opt.Repeat {
		for _, side := range []struct {
			settings []string
			seconds  *[]float64
		}{
			{[]string{"strategy.verification.mode=none"}, &o.Without},
			{[]string{"strategy.verification.mode=spot_check", fmt.Sprintf("strategy.verification.fraction=%v", opt.Audited)},
				&o.With},
		} {
			j, err := opt.Load(side.settings...)
			if err != nil {
				return nil, err
			}
			dir := filepath.Join(opt.Dir, "run")
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
			s, err := Train(ctx, consumer.Options{Job: j, Dir: dir})
			if err != nil {
				return nil, err
			}
			if o.Rounds = s.Rounds - opt.WarmUp; o.Rounds < 1 {
				return nil, fmt.Errorf("overhead: a run of %d rounds has none after a warm-up of %d", s.Rounds, opt.WarmUp)
			}
			took, audits, err := afterWarmup(dir, opt.WarmUp)
			if err != nil {
				return nil, err
			}
			*side.seconds = append(*side.seconds, took)
			if s.Audits.Drawn > 0 {
				o.Drawn = append(o.Drawn, audits)
			}
		}
	}
	return o, nil
}

// afterWarmup returns the seconds of the rounds of a run after the first ones, and the audits of their units.
func afterWarmup(dir string, first int) (seconds float64, audits int, err error) {
	metrics, err := rundir.ReadLines[rundir.Metric](filepath.Join(dir, rundir.FileMetrics))
	if err != nil {
		return 0, 0, err
	}
	for _, m := range metrics {
		if m.Kind == "round" && int(m.Round) > first {
			seconds += m.Seconds
		}
	}
	receipts, err := rundir.ReadLines[rundir.ReceiptLine](filepath.Join(dir, rundir.FileReceipts))
	for _, r := range receipts {
		if r.Kind == reward.Audit && int(r.Round) > first {
			audits++
		}
	}
	return seconds, audits, err
}
