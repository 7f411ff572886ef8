package consumer

import (
	"bytes"
	"context"
	"errors"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/role/bundle"
)

// finalize writes what a run leaves behind.
func (c *Consumer) finalize(ctx context.Context) (*rundir.Summary, error) {
	c.show("closing the books")
	k, err := ending.Read(ctx, c.Chain, c.Job.JobID())
	if err != nil {
		return nil, err
	}
	metrics, err := c.Dir.ReadMetrics()
	if err != nil {
		return nil, err
	}
	if c.last == nil { // restarted after the last round was collected
		if c.last, err = bundle.LoadCheckpoint(ctx, k.Run.Base, c.Store.Get); err != nil {
			return nil, err
		}
	}
	defer c.last.Rest()
	e := ending.State{CompiledJob: c.Job, Books: k, Lines: c.lines, Metrics: metrics, Root: c.last.Root(),
		RefereeTime: c.RefereeTime, Diverged: c.diverged}
	s := e.Summary()
	if err := errors.Join(ending.WriteReceipts(c.Dir, k.Receipts), e.WriteDisputes(c.Dir), c.writeLinks(ctx)); err != nil {
		return nil, err
	}
	leaves, err := c.Job.Leaves()
	if err != nil {
		return nil, err
	}
	best, err := measured.Best(c.Job, c.eval, c.last)
	if err != nil {
		return nil, err
	}
	files, err := prepare.ExportModel(c.Job, c.last, best, leaves)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := folder.WriteFileBy(c.Dir.File(f.Name), f.Write); err != nil {
			return nil, err
		}
	}
	if err := c.Dir.WriteReport(e.Report(s)); err != nil {
		return nil, err
	}
	var state bytes.Buffer
	if err := tracking.TrainerState(&state, tracked(metrics)); err != nil {
		return nil, err
	}
	s.PeakMemory = memory.Peak()
	if err := errors.Join(c.Dir.Write(rundir.FileTrainerState, state.Bytes()), c.prune(ctx, 1),
		c.Dir.WriteJSON(rundir.FileSummary, s)); err != nil {
		return s, err
	}
	return s, c.Dir.WriteCard()
}

// EndWith writes what a run that ended with a *train.DivergedError leaves behind: the model and the receipts of the
// rounds before. It returns the error with which the run ended. It follows Run, whatever that returns.
func (c *Consumer) EndWith(ctx context.Context, err error) error {
	defer c.board.Close()
	why := (*train.DivergedError)(nil)
	if !errors.As(err, &why) || c.last == nil || c.diverged != "" { // concluded, in the last case
		return err
	}
	c.diverged = why.Error()
	for round := uint32(len(c.lines)) + 1; round <= why.Round; round++ {
		if failure := c.collect(ctx, round, why.Round); failure != nil {
			return errors.Join(err, failure)
		}
	}
	_, failure := c.finalize(ctx)
	return errors.Join(err, failure)
}
