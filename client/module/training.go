package module

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Training reads x/training: runs, disputes and receipts. Work writes it.
type Training struct{ account Account }

// Run is the state of the run of a job; ErrNotFound before its order is matched.
func (t Training) Run(ctx context.Context, job string) (run.State, error) {
	r, err := trainingpb.NewQueryClient(t.account).Run(ctx, &trainingpb.QueryRunRequest{Job: job})
	return query.One[run.State](r.GetState(), err)
}

// Lineage is the attested checkpoint of a round, from 1; ErrNotFound before it is attested.
func (t Training) Lineage(ctx context.Context, job string, round uint32) (progress.Entry, error) {
	r, err := trainingpb.NewQueryClient(t.account).Lineage(ctx,
		&trainingpb.QueryLineageRequest{Job: job, From: round, Limit: 1})
	entries, err := query.List[progress.Entry](r.GetEntries(), err)
	switch {
	case err != nil:
		return progress.Entry{}, err
	case len(entries) == 0 || entries[0].Attestation.Checkpoint.Round != round:
		return progress.Entry{}, fmt.Errorf("%w: checkpoint %d of %s", query.ErrNotFound, round, job)
	}
	return entries[0], nil
}

// Receipts are all receipts of a job, in the order in which they were issued.
func (t Training) Receipts(ctx context.Context, job string) ([]reward.Receipt, error) {
	return t.ReceiptsFrom(ctx, job, 0)
}

// ReceiptsFrom are the receipts of a job from a sequence number on.
func (t Training) ReceiptsFrom(ctx context.Context, job string, from uint64) ([]reward.Receipt, error) {
	var all []reward.Receipt
	for {
		r, err := trainingpb.NewQueryClient(t.account).Receipts(ctx,
			&trainingpb.QueryReceiptsRequest{Job: job, From: from + uint64(len(all))})
		page, err := query.List[reward.Receipt](r.GetReceipts(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
}

// Disputes are the disputes of a job, open and decided, in order of round, unit and opening.
func (t Training) Disputes(ctx context.Context, job string) ([]dispute.Dispute, error) {
	var all []dispute.Dispute
	for next := (&trainingpb.QueryDisputesRequest{Job: job}); ; {
		r, err := trainingpb.NewQueryClient(t.account).Disputes(ctx, next)
		page, err := query.List[dispute.Dispute](r.GetGames(), err)
		if all = append(all, page...); err != nil || !r.More {
			return all, err
		}
		next.Round, next.Unit, next.Number = r.Round, r.Unit, r.Number
	}
}

// Seals are the seals of the audits of a round that passed.
func (t Training) Seals(ctx context.Context, job string, round uint32) ([]trainingpb.Seal, error) {
	r, err := trainingpb.NewQueryClient(t.account).Seals(ctx, &trainingpb.QuerySealsRequest{Job: job, Round: round})
	return r.GetSeals(), query.Known(err)
}

// Runs are the identifiers of the jobs that have a run, in order: all of them, or those that are not over.
func (t Training) Runs(ctx context.Context, active bool) ([]string, error) {
	var all []string
	for next := (&trainingpb.QueryRunsRequest{Active: active}); ; next.After = all[len(all)-1] {
		r, err := trainingpb.NewQueryClient(t.account).Runs(ctx, next)
		if err != nil || len(r.Jobs) == 0 {
			return all, query.Known(err)
		}
		all = append(all, r.Jobs...)
	}
}

// Penalty has the slashes and bounties of a verdict.
func (t Training) Penalty(ctx context.Context) (penalty.Params, error) {
	r, err := trainingpb.NewQueryClient(t.account).Params(ctx, &trainingpb.QueryParamsRequest{})
	return query.One[penalty.Params](r.GetParams(), err)
}
