package bench

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node"
)

// overheadBar is how much longer an honest run may take with audits at a rate of 5 %.
const overheadBar = 1.08

// overheadFlags say on which job the cost of audits is measured.
type overheadFlags struct {
	job          string
	set          []string
	warmUp, runs int
	audited      float64
}

// measure returns nothing if there is no job.
func (f overheadFlags) measure(ctx context.Context, c *terminal.Console) (_ *node.Overhead, err error) {
	if f.job == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "starling-overhead-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return node.MeasureOverhead(ctx, node.OverheadOptions{
		Load: func(overrides ...string) (*job.Job, error) {
			return jobfile.Load(ctx, c, f.job, slices.Concat(f.set, overrides))
		},
		Audited: f.audited, WarmUp: f.warmUp, Repeat: f.runs, Dir: dir,
	})
}
