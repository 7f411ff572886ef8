package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/localnet"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/market"
)

// Train runs a job, on an embedded network unless the options name another, and leaves its results in a folder. A
// cancelled context stops it cleanly: attested rounds stay, and a later call with Resume continues after them.
func Train(ctx context.Context, opt consumer.Options) (summary *rundir.Summary, err error) {
	defer memory.Pace(0)()
	b, err := prepared(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if prepare.Large(b) {
		defer memory.Tight()()
	}
	if len(b.Ignored) > 0 && opt.Say != nil {
		opt.Say("keys of the base model's config.json that mean nothing to it were ignored: " + strings.Join(b.Ignored, ", "))
	}
	if opt.Plan != "" && opt.Plan != b.PlanID() {
		return nil, fmt.Errorf("%w: it is %s, planned was %s", plan.ErrPlanStale, b.PlanID(), opt.Plan)
	}
	if opt.Network == "" {
		if err := trainingFits(b); err != nil {
			return nil, err
		}
	}
	if opt.Dishonest < 0 || opt.Dishonest >= prepare.Workers(b) {
		return nil, fmt.Errorf("train: %d dishonest workers of %d: at least one must be honest", opt.Dishonest,
			prepare.Workers(b))
	}
	if opt.Job.Executor == spec.Torch && opt.Network == "" {
		if err := torch.CheckAsked(ctx, &opt.Torch, opt.Say); err != nil {
			return nil, err
		}
	}
	out, err := rundir.OpenOutDir(opt.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	order, err := b.Order()
	if opt.Network == "" {
		order, err = b.LocalOrder()
	}
	if err != nil {
		return nil, err
	}
	fresh := out.Run.ID == ""
	if fresh && opt.Account != nil {
		b.Keep(opt.Mark, opt.Account.Chain.Address())
	}
	if err := consumer.Prepare(out, b, opt); err != nil {
		return nil, err
	}
	if err := follow(ctx, &opt, out.Path, b, !fresh); err != nil {
		return nil, err
	}
	w := instrument.New(opt.Version, "consumer")
	progress := dashboard.NewProgressGauges(w.Metrics)
	opt.Progress = progress.Follow(opt.Progress)
	defer func() {
		p := progress.Latest()
		p.Job, p.Rounds = b.JobID(), int(b.Spec.Rounds)
		if summary != nil {
			p.PaidUzen = summary.PaidUzen + summary.FeeUzen // including the payments after the last round
		}
		unfollow(ctx, opt, p, err)
	}()
	stop, err := w.Metrics.Serve(ctx, opt.Metrics)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	shown := dashboard.OpenDashboard(ctx, opt, b.JobID, progress)
	defer func() { err = errors.Join(err, shown.Close()) }()
	n, err := startNetwork(ctx, out, b, opt, w)
	if err != nil && fresh {
		err = errors.Join(err, out.Withdraw())
	}
	if err != nil {
		return nil, err
	}
	shown.Use(n.Client(), n.Links)
	summary, err = n.RunJob(ctx, order)
	shown.View.Use(nil)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // the cause of any failure is the cancelled context
	}
	if err = errors.Join(err, n.Stop()); err != nil {
		return nil, errors.Join(err, forget(out, err))
	}
	out.Run.Finished = true
	return summary, errors.Join(out.WriteRun(), os.RemoveAll(out.File(rundir.DirNetwork)))
}

// forget takes a run back whose order was refused because another version of the numerics has come into force since the
// job was prepared. The job is prepared for that version when the command is run again.
func forget(out *rundir.OutDir, refused error) error {
	if !errors.Is(refused, market.ErrNumerics) {
		return nil
	}
	return out.Withdraw()
}

// prepared is the compiled job, once it is its turn.
func prepared(ctx context.Context, opt consumer.Options) (*prepare.CompiledJob, error) {
	if opt.Preparing != nil {
		select {
		case opt.Preparing <- struct{}{}:
			defer func() { <-opt.Preparing }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := chooseNumerics(ctx, opt); err != nil {
		return nil, err
	}
	return prepare.Watched(opt.Job, tokenizing(ctx, opt.Say))
}

// chooseNumerics gives the job the version of the numerics of the run in its folder, if it is resumed, or else that
// which its network has in force. If the network does not answer, the start of the run reports that, to followers of
// the job as well; an order of another version than the network has is refused.
func chooseNumerics(ctx context.Context, opt consumer.Options) (err error) {
	old := rundir.OutDir{Path: opt.Dir}
	switch {
	case opt.Resume && old.ReadRun() == nil:
		opt.Job.Numerics = old.Numerics()
	case opt.Network != "":
		opt.Job.Numerics, err = session.Numerics(ctx, opt.Network)
		if err != nil && !errors.Is(err, kernel.ErrVersion) && ctx.Err() == nil {
			opt.Job.Numerics, err = 0, nil
		}
	}
	return err
}

// network is where a job runs.
type network interface {
	// RunJob places the order, unless that was done before a restart, and returns when the books are closed.
	RunJob(ctx context.Context, order market.Order) (*rundir.Summary, error)
	Client() *client.Client                        // of the consumer
	Links(ctx context.Context) ([]api.Link, error) // who fetched from whom so far, as far as it is known
	Stop() error
}

func startNetwork(ctx context.Context, out *rundir.OutDir, b *prepare.CompiledJob, opt consumer.Options,
	w *instrument.Instruments) (network, error) {
	if opt.Network != "" {
		return startRemote(ctx, out, b, opt)
	}
	return localnet.Start(ctx, out, b, opt, w)
}

// tokenizing ends tokenizing with the context, and says its progress every ten seconds; say may be nil.
func tokenizing(ctx context.Context, say func(text string)) data.Watch {
	begin := time.Now()
	last := begin
	return func(p data.Progress) error {
		if now := time.Now(); say != nil && now.Sub(last) >= 10*time.Second {
			last = now
			say(dataset.Tokenizing(p, now.Sub(begin)))
		}
		return ctx.Err()
	}
}
