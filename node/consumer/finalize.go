package consumer

import (
	"bytes"
	"context"
	"errors"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/web/totals"
)

// Books is what the chain says about a finished run.
type Books struct {
	escrow   market.Escrow
	Receipts []reward.Receipt
	disputes []dispute.Dispute
	State    run.State
}

func ReadBooks(ctx context.Context, chain *client.Client, id string) (k Books, err error) {
	if k.escrow, err = chain.Market.Escrow(ctx, id); err != nil {
		return k, err
	}
	if k.Receipts, err = chain.Training.Receipts(ctx, id); err != nil {
		return k, err
	}
	if k.disputes, err = chain.Training.Disputes(ctx, id); err != nil {
		return k, err
	}
	k.State, err = chain.Training.Run(ctx, id)
	return k, err
}

// FinalState is all that is known about a run that is over.
type FinalState struct {
	*prepare.CompiledJob
	Books
	Lines       []rundir.Line
	Metrics     []rundir.Metric
	Root        canon.Digest                  // of the last checkpoint
	RefereeTime func(dispute.Dispute) float64 // milliseconds of the referee for the leaf of a dispute, 0 if not known
	diverged    string                        // why the run was given up, if it diverged
}

// finalize writes what a run leaves behind.
func (c *Consumer) finalize(ctx context.Context) (*rundir.Summary, error) {
	c.show("closing the books")
	k, err := ReadBooks(ctx, c.Chain, c.Job.JobID())
	if err != nil {
		return nil, err
	}
	metrics, err := c.Dir.ReadMetrics()
	if err != nil {
		return nil, err
	}
	if c.last == nil { // restarted after the last round was collected
		if c.last, err = bundle.LoadCheckpoint(ctx, k.State.Base, c.Store.Get); err != nil {
			return nil, err
		}
	}
	defer c.last.Rest()
	e := FinalState{c.Job, k, c.lines, metrics, c.last.Root(), c.RefereeTime, c.diverged}
	s := e.Summary()
	if err := errors.Join(WriteReceipts(c.Dir, k.Receipts), e.WriteDisputes(c.Dir), c.writeLinks(ctx)); err != nil {
		return nil, err
	}
	leaves, err := c.Job.Leaves()
	if err != nil {
		return nil, err
	}
	files, err := prepare.ExportModel(c.Job, c.last, leaves)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := keystore.WriteFileBy(c.Dir.File(f.Name), f.Write); err != nil {
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

func (e FinalState) Summary() *rundir.Summary {
	spec := e.Spec
	s := &rundir.Summary{
		Job: e.JobID(), Name: e.Job.Name, Rounds: len(e.Lines), Workers: int(spec.Units),
		Steps:    len(e.Lines) * int(spec.Steps),
		PaidUzen: e.escrow.Paid, FeeUzen: e.escrow.Fee, RefundedUzen: e.escrow.Refunded, BudgetUzen: e.escrow.Budget,
		StateRoot: e.Root, Disputes: []rundir.DisputeLine{},
	}
	s.Tokens = e.Tokens(s.Steps)
	s.FirstEvalLoss, s.FinalEvalLoss, s.FinalMeasured = rundir.Evaluations(e.Metrics)
	if x := heldout.BitsPerByte(e.CompiledJob, &s.FinalEvalLoss); x != nil {
		s.BitsPerByte = *x
	}
	if s.Diverged = e.diverged; s.Diverged == "" {
		s.Diverged = rundir.Rise(e.Metrics)
	}
	for _, m := range e.Metrics {
		if m.Kind == "round" {
			s.Seconds += m.Seconds
			s.BytesUp += m.BytesUp
			s.BytesDown += m.BytesDown
		}
	}
	for _, r := range e.Receipts {
		switch r.Kind {
		case reward.Slash:
			s.SlashedUzen += r.Amount
		case reward.Audit:
			totals.CountAudit(&s.Audits, r.Reason)
		}
	}
	s.Plants = e.plants()
	for _, g := range e.disputes {
		if g.Planted {
			continue
		}
		s.Disputes = append(s.Disputes, rundir.NewDisputeLine(g, e.RefereeTime(g)))
	}
	return s
}

// plants counts the planted faults: several may challenge one.
func (k Books) plants() (n rundir.PlantCounts) {
	for _, m := range k.State.Members {
		n.Shown += int(m.Planted)
	}
	caught := map[work.UnitID]bool{}
	for _, g := range k.disputes {
		if g.Planted {
			caught[role.Disputed(g)] = true
		}
	}
	n.Caught = len(caught)
	for _, r := range k.Receipts {
		if r.Kind == reward.Slash && r.Reason == reward.PlantPassed {
			n.Passed++
		}
	}
	return n
}

func WriteReceipts(out *rundir.OutDir, receipts []reward.Receipt) error {
	lines := make([]rundir.ReceiptLine, len(receipts))
	for i, r := range receipts {
		lines[i] = rundir.ReceiptLine{Receipt: r, Round: r.Round + 1, Explanation: reward.Explain(r)}
	}
	return rundir.WriteLines(out, rundir.FileReceipts, lines)
}

// WriteDisputes writes the disputes of a run, and how long their leaves took.
func (e FinalState) WriteDisputes(out *rundir.OutDir) error {
	records := make([]rundir.DisputeRecord, 0, len(e.disputes))
	for _, g := range e.disputes {
		records = append(records, rundir.NewDisputeRecord(g, e.RefereeTime(g), e.Names()))
	}
	return rundir.WriteLines(out, rundir.FileDisputes, records)
}
