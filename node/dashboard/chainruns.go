package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/totals"
)

// ChainRuns are the jobs of a network as the chain knows them: source.Runs. The chain has what was ordered, attested,
// disputed and paid; losses, logs and files are with those who train and with the consumer.
type ChainRuns struct{ View *ChainView }

func notOnChain(what, fix string) error {
	return &failure.Error{Status: http.StatusNotFound, Code: "NOT_ON_CHAIN",
		Detail: "the chain has no " + what + ": it carries digests only", Fix: fix}
}

// asked is how many runs the chain is asked about at a time.
const asked = 8

// List implements source.Runs.
func (r *ChainRuns) List(ctx context.Context) ([]api.Job, error) {
	c, err := r.View.Client()
	if err != nil {
		return nil, err
	}
	orders, err := c.Market.Orders(ctx)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	jobs := make([]api.Job, 0, len(orders))
	for _, o := range orders {
		jobs = append(jobs, ordered(o))
	}
	ids, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	told := make([]api.Job, len(ids))
	var asking errgroup.Group
	asking.SetLimit(asked)
	for i, id := range ids {
		asking.Go(func() error {
			h, err := r.books(ctx, c, id)
			if err != nil {
				return err
			}
			summarize(h)
			told[i] = h.Job
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	jobs = append(jobs, told...)
	slices.SortStableFunc(jobs, func(a, b api.Job) int { return cmp.Compare(rank(a), rank(b)) })
	return jobs, nil
}

// rank sorts open jobs before finished ones.
func rank(j api.Job) int {
	switch j.State {
	case "queued":
		return 0
	case "running":
		return 1
	}
	return 2
}

// ordered is an order that waits.
func ordered(o module.OrderStatus) api.Job {
	return api.Job{ID: o.ID, Job: o.ID, Name: o.ID, Kind: "network", State: "queued", Rounds: int(o.Terms.Rounds),
		BudgetUzen: o.Budget, Coin: coins.Shown(o.Coin),
		Reason: &api.Reason{Code: o.Why, Text: "it waits: " + strings.ReplaceAll(o.Why, "_", " "),
			Next: "starling market orders says more, and starling job cancel takes it back"}}
}

// books are a run with its disputes and payments, from which its totals are computed.
func (r *ChainRuns) books(ctx context.Context, c *client.Client, id string) (*source.History, error) {
	h, err := r.totals(ctx, c, id)
	if err != nil {
		return nil, err
	}
	games, err := c.Training.Disputes(ctx, id)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	for _, g := range games {
		h.Disputes = append(h.Disputes, shownDispute(rundir.NewDisputeRecord(g, 0, nil)))
	}
	receipts, err := c.Training.Receipts(ctx, id)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	h.Receipts = runs.Explain(receipts, h.Disputes)
	return h, nil
}

// totals are where a run stands, its money and its members.
func (r *ChainRuns) totals(ctx context.Context, c *client.Client, id string) (*source.History, error) {
	s, err := c.Training.Run(ctx, id)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	e, err := c.Market.Escrow(ctx, id)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	o, err := c.Market.PlacedOrder(ctx, id)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	roles := map[string]string{}
	for _, m := range s.Members {
		roles[m.ID] = m.Role.String()
	}
	return &source.History{Job: totalsOf(s, e, o), Roles: roles}, nil
}

func totalsOf(s run.State, e market.Escrow, o module.OrderStatus) api.Job {
	j := api.Job{ID: s.Terms.Job, Job: s.Terms.Job, Name: s.Terms.Job, Kind: "network", State: "running",
		Phase: s.Phase.String(), Round: int(s.Round), Rounds: int(s.Terms.Rounds),
		Workers: len(s.Active(crew.Worker)), BudgetUzen: e.Budget, PaidUzen: e.Paid, FeeUzen: e.Fee, RefundedUzen: e.Refunded,
		Coin: coins.Shown(o.Coin)}
	if s.Base.Round > 0 {
		j.StateRoot = s.Base.Root.String()
	}
	switch s.Phase {
	case progress.Done:
		j.State, j.Phase, j.Round = "done", "", j.Rounds
	case progress.Halted:
		j.State, j.Phase = "halted", ""
		j.Reason = &api.Reason{Code: s.Why,
			Text: "the run ended before its last round: " + strings.ReplaceAll(s.Why, "_", " "),
			Next: "see its receipts with starling job receipts"}
	default:
		if o.Status == "paused" {
			j.Phase, j.Reason = o.Status, &api.Reason{Code: cmp.Or(o.Why, o.Status),
				Text: "no further round begins: " + strings.ReplaceAll(cmp.Or(o.Why, "its consumer paused it"), "_", " "),
				Next: "starling job resume ends a pause, and starling job top-up raises the budget"}
			break
		}
		j.Reason = &api.Reason{Code: "training",
			Text: fmt.Sprintf("round %d of %d is in the phase %s", min(j.Round+1, j.Rounds), j.Rounds, s.Phase)}
	}
	return j
}

// History implements source.Runs.
func (r *ChainRuns) History(ctx context.Context, id string) (*source.History, error) {
	c, err := r.View.Client()
	if err != nil {
		return nil, err
	}
	h, err := r.books(ctx, c, id)
	if errors.Is(err, failure.ErrNotFound) {
		return r.order(ctx, c, id)
	}
	if err != nil {
		return nil, err
	}
	for round := uint32(1); ; round++ {
		e, err := c.Training.Lineage(ctx, id, round)
		if errors.Is(err, client.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, r.View.unanswered(err)
		}
		h.Lineage = append(h.Lineage, shownCheckpoint(rundir.NewLine(e)))
	}
	if h.Links, err = inspect.ReportedLinks(ctx, c, id); err != nil {
		return nil, r.View.unanswered(err)
	}
	summarize(h)
	return h, nil
}

// summarize fills in what the books of a run tell of it.
func summarize(h *source.History) {
	j := &h.Job
	j.Disputes = len(h.Disputes)
	for _, m := range totals.Members(h) {
		j.SlashedUzen += m.SlashedUzen
		totals.AddAudits(&j.Audits, m.Audits)
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, j.State, j.Phase, j.Round, j.PaidUzen, j.Workers, len(h.Receipts), len(h.Disputes), h.Links)
	h.Version = sum.Sum64()
}

// order is a job that has no run.
func (r *ChainRuns) order(ctx context.Context, c *client.Client, id string) (*source.History, error) {
	o, err := c.Market.PlacedOrder(ctx, id)
	if err != nil {
		return nil, r.View.unanswered(err)
	}
	j := ordered(o)
	if o.Status == "ended" {
		j.State, j.Reason = "failed", &api.Reason{Code: o.Why,
			Text: "the order ended without a run: " + strings.ReplaceAll(o.Why, "_", " ")}
	}
	return &source.History{Version: 1, Job: j}, nil
}

func shownCheckpoint(l rundir.Line) api.Checkpoint {
	p := api.Checkpoint{Round: int(l.Round), StateRoot: l.StateRoot.String(), Checkpoint: l.Checkpoint, Updates: l.Updates}
	for _, s := range l.Signers {
		p.Signers = append(p.Signers, api.Signer(s))
	}
	return p
}

// Log implements source.Runs.
func (r *ChainRuns) Log(context.Context, string, int64, int) (api.Log, error) {
	return api.Log{}, notOnChain("log of a job", "starling worker logs has that of a worker, and the folder of "+
		"starling train that of the consumer")
}

// Files implements source.Runs.
func (r *ChainRuns) Files(context.Context, string) ([]api.File, error) {
	return nil, notOnChain("files of a job", "they are in the folder of the consumer")
}

// Open implements source.Runs.
func (r *ChainRuns) Open(context.Context, string, string) (io.ReadSeekCloser, api.File, error) {
	return nil, api.File{}, notOnChain("files of a job", "they are in the folder of the consumer")
}
