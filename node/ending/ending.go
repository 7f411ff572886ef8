// Package ending makes what the folder of a run keeps once the run is over: its summary, its report, its receipts and
// its disputes, from the books of a chain, real or simulated.
package ending

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/heldout"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/web/totals"
)

// Books is what the chain says about a finished run.
type Books struct {
	escrow   market.Escrow
	Receipts []reward.Receipt
	disputes []dispute.Dispute
	Run      run.State
}

// Read reads the books of a run.
func Read(ctx context.Context, chain *client.Client, id string) (k Books, err error) {
	if k.escrow, err = chain.Market.Escrow(ctx, id); err != nil {
		return k, err
	}
	if k.Receipts, err = chain.Training.Receipts(ctx, id); err != nil {
		return k, err
	}
	if k.disputes, err = chain.Training.Disputes(ctx, id); err != nil {
		return k, err
	}
	k.Run, err = chain.Training.Run(ctx, id)
	return k, err
}

// State is all that is known about a run that is over.
type State struct {
	*prepare.CompiledJob
	Books
	Lines       []rundir.Line
	Metrics     []rundir.Metric
	Root        canon.Digest                  // of the last checkpoint
	RefereeTime func(dispute.Dispute) float64 // milliseconds of the referee for the leaf of a dispute, 0 if not known
	Diverged    string                        // why the run was given up, if it diverged
}

// Summary is summary.json, without what only the process of a consumer knows.
func (e State) Summary() *rundir.Summary {
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
	if s.Diverged = e.Diverged; s.Diverged == "" {
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
			if r.Coin.Own() {
				s.SlashedUzen += r.Amount
			}
		case reward.Refund:
			s.Coin = r.Coin
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
	for _, m := range k.Run.Members {
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

// WriteReceipts writes the receipts of a run, each with its explanation.
func WriteReceipts(out *rundir.OutDir, receipts []reward.Receipt) error {
	lines := make([]rundir.ReceiptLine, len(receipts))
	for i, r := range receipts {
		lines[i] = rundir.ReceiptLine{Receipt: r, Round: r.Round + 1, Explanation: reward.Explain(r)}
	}
	return rundir.WriteLines(out, rundir.FileReceipts, lines)
}

// WriteDisputes writes the disputes of a run, and how long their leaves took.
func (e State) WriteDisputes(out *rundir.OutDir) error {
	records := make([]rundir.DisputeRecord, 0, len(e.disputes))
	for _, g := range e.disputes {
		records = append(records, rundir.NewDisputeRecord(g, e.RefereeTime(g), e.Names()))
	}
	return rundir.WriteLines(out, rundir.FileDisputes, records)
}
