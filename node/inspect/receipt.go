package inspect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"
)

// Earnings are all receipts of an account on a network, with their explanations: of epochs and models, the latest
// first, then of jobs; and their sums by day, the latest first.
func Earnings(ctx context.Context, network, account string) ([]rundir.Explanation, []api.EarnedDay, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	found, err := receiptsOf(ctx, c, account)
	if err != nil {
		return nil, nil, err
	}
	days, err := rundir.ByDay(found, func(height int64) (string, error) { return dayOf(ctx, c, height) })
	return found, days, err
}

// EarnedByDay are the sums of all receipts of an account by day, the latest first.
func EarnedByDay(ctx context.Context, c *client.Client, account string) ([]api.EarnedDay, error) {
	found, err := receiptsOf(ctx, c, account)
	if err != nil {
		return nil, err
	}
	return rundir.ByDay(found, func(height int64) (string, error) { return dayOf(ctx, c, height) })
}

// EarnedByHour are the sums of all receipts of an account on a network by hour in UTC, such as 2026-11-25T13.
func EarnedByHour(ctx context.Context, network, account string) (map[string]api.EarnedDay, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	found, err := receiptsOf(ctx, c, account)
	if err != nil {
		return nil, err
	}
	sums, err := rundir.ByDay(found, func(height int64) (string, error) { return timeOf(ctx, c, height, HourForm) })
	by := map[string]api.EarnedDay{}
	for _, s := range sums {
		by[s.Day] = s
	}
	return by, err
}

// HourForm is how EarnedByHour writes an hour.
const HourForm = "2006-01-02T15"

// dayOf is the day of a block in UTC; "" if the validator does not keep the block.
func dayOf(ctx context.Context, c *client.Client, height int64) (string, error) {
	return timeOf(ctx, c, height, time.DateOnly)
}

func timeOf(ctx context.Context, c *client.Client, height int64, form string) (string, error) {
	r, err := c.Ledger.Record(ctx, height)
	if errors.Is(err, client.ErrNotFound) && ctx.Err() == nil {
		return "", nil
	}
	return r.Time.UTC().Format(form), err
}

func receiptsOf(ctx context.Context, c *client.Client, account string) ([]rundir.Explanation, error) {
	rewarded, err := c.Reward.Rewarded(ctx, account)
	if err != nil {
		return nil, err
	}
	found := explained(rewarded, nil)
	jobs, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, name := range jobs {
		of, err := jobExplanations(ctx, c, name)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(of, func(e rundir.Explanation) bool { return e.Who != account })...)
	}
	return found, nil
}

// JobReceipts are the receipts of a job on a network, of an epoch (epoch/NUMBER), or of the revenue of a model
// (model/JOB), with their explanations: those that subject means, as for Explain.
func JobReceipts(ctx context.Context, network, name, subject string) (found []rundir.Explanation, err error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var all []rundir.Explanation
	if (reward.Receipt{Job: name}).OfRun() {
		all, err = jobExplanations(ctx, c, name)
	} else {
		all, err = bookExplanations(ctx, c, name, subject)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.Is(subject) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, rundir.ErrNoReceipt
	}
	return found, nil
}

// jobExplanations explain the receipts of a job.
func jobExplanations(ctx context.Context, c *client.Client, name string) ([]rundir.Explanation, error) {
	all, err := c.Training.Receipts(ctx, name)
	if err != nil || !slices.ContainsFunc(all, reward.Receipt.OfDispute) {
		return explained(all, nil), err
	}
	games, err := c.Training.Disputes(ctx, name)
	return explained(all, games), err
}

// bookExplanations explain the receipts of an epoch or a model: one of them if its number is given. An epoch has as
// many as there are participants.
func bookExplanations(ctx context.Context, c *client.Client, book, subject string) ([]rundir.Explanation, error) {
	if seq, err := strconv.ParseUint(subject, 10, 64); err == nil {
		one, err := c.Reward.Book(ctx, book, seq, 1)
		return explained(one, nil), err
	}
	all, err := c.Reward.Book(ctx, book, 0, 0)
	return explained(all, nil), err
}

// explained explains receipts, which are all of their job, with its disputes.
func explained(all []reward.Receipt, games []dispute.Dispute) (found []rundir.Explanation) {
	var disputes []rundir.DisputeRecord
	for _, g := range games {
		disputes = append(disputes, rundir.NewDisputeRecord(g, 0, nil))
	}
	for _, r := range all {
		line := rundir.ReceiptLine{Receipt: r, Round: r.Round, Explanation: reward.Explain(r)}
		if r.OfRun() {
			line.Round++ // people count from 1
		}
		found = append(found, rundir.NewExplanation(line, r, all, rundir.DisputeOf(line, disputes)))
	}
	return found
}
