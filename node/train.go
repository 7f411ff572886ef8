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
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/engine"
)

// TrainOptions say how a job is run.
type TrainOptions struct {
	Job       *job.Job
	Dir       string        // output folder
	Plan      string        // identifier of the job as it was planned; "": it was not
	Resume    bool          // go on with the unfinished run in Dir
	Network   string        // HTTP interface of a validator; "": an embedded network
	Home      string        // folder of the consumer's key on a Network
	Listen    []string      // multiaddrs at which a Network's workers fetch the job; none: any port of the loopback
	Torch     torch.Options // of the workers of an embedded network, if the job asks for PyTorch
	Dishonest int           // workers of an embedded network that fabricate their updates
	Metrics   string        // host:port where Prometheus finds metrics; "": nowhere
	Web       string        // host:port of the dashboard while the run goes on; "": none
	Version   string        // of the binary
	Progress  func(Progress)
	Say       func(text string) // news worth a line of its own
	Shown     func(runs.Live)   // gets what this process knows of the run beside its files, once

	disk disk.Share // of every party of an embedded network; zero: an equal part of the free disk
}

// Progress is the state of a run at one moment. A loss that is not known is NaN.
type Progress struct {
	Job             string
	Step, Steps     int // inner steps in attested rounds
	Round, Rounds   int
	Phase           string
	Loss, EvalLoss  float64
	LearningRate    float64
	GradNorm        float64 // before clipping, the mean over the latest round; NaN: nobody tells
	TokensPerSecond float64
	Workers, Target int
	PaidUzen        uint64
	BudgetUzen      uint64
	Left            time.Duration
}

// ErrBudget is returned when the budget cannot pay for the job.
var ErrBudget = errors.New("budget too small")

// HaltedError says that a run ended before its last round.
type HaltedError struct {
	Why string // reason code of protocol/run
}

func (e *HaltedError) Error() string { return "the run halted: " + e.Why }

// Fix says what to do.
func (e *HaltedError) Fix() string {
	switch e.Why {
	case run.WhyBudgetExhausted:
		return "raise budget.max_cost; what is trained so far is in the output folder"
	case run.WhyNoWorkers:
		return "start again with more workers: all of these left or were excluded"
	case run.WhyNoVerifiers:
		return "start again with more verifiers: all of these left or were excluded"
	}
	return "see starling.log in the output folder"
}

// ExitCode is the exit code that a command ends with.
func (e *HaltedError) ExitCode() int {
	switch e.Why {
	case run.WhyBudgetExhausted:
		return 6
	case run.WhyNoWorkers, run.WhyNoVerifiers:
		return 7
	}
	return 11
}

const (
	embeddedVerifiers = 1 // unless the job file says how many: they are one owner's, and would look at what the other saw
	// embeddedPrice is what the parties of an embedded network ask for, in uzen per 10^15 floating-point operations:
	// one ZEN per 10^12.
	embeddedPrice = 1_000_000_000
)

// Train runs a job, on an embedded network unless the options name another, and leaves its results in a folder. A cancelled context stops it cleanly:
// what was attested stays, and a later call with Resume goes on from there.
func Train(ctx context.Context, opt TrainOptions) (_ *Summary, err error) {
	b, err := NewBlueprint(opt.Job)
	if err != nil {
		return nil, err
	}
	if len(b.Ignored) > 0 && opt.Say != nil {
		opt.Say("keys of the base model's config.json that mean nothing to it were ignored: " + strings.Join(b.Ignored, ", "))
	}
	if opt.Plan != "" && opt.Plan != b.JobID() {
		return nil, fmt.Errorf("%w: it is %s, planned was %s", ErrPlanStale, b.JobID(), opt.Plan)
	}
	if opt.Dishonest < 0 || opt.Dishonest >= int(b.Spec.Units) {
		return nil, fmt.Errorf("node: %d dishonest workers of %d: at least one must be honest", opt.Dishonest, b.Spec.Units)
	}
	if opt.Job.Executor == job.Torch && opt.Network == "" {
		if err := checkTorch(ctx, &opt.Torch, opt.Say); err != nil {
			return nil, err
		}
	}
	out, err := openOutDir(opt.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	order, err := b.order()
	if opt.Network == "" {
		order, err = b.embeddedOrder()
	}
	if err != nil {
		return nil, err
	}
	if err := out.prepare(b, opt); err != nil {
		return nil, err
	}
	w := newWatch(opt.Version, "consumer")
	opt.Progress = w.follow(opt.Progress)
	stop, err := w.metrics.Serve(ctx, opt.Metrics)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	shown := openDashboard(ctx, opt, b.JobID(), w)
	defer func() { err = errors.Join(err, shown.close()) }()
	n, err := startNetwork(ctx, out, b, opt, w)
	if err != nil {
		return nil, err
	}
	shown.use(n)
	summary, err := n.runJob(ctx, order)
	shown.view.use(nil)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // whatever failed, it failed because we were told to stop
	}
	if err = errors.Join(err, n.stop()); err != nil {
		return nil, err
	}
	out.Run.Finished = true
	return summary, errors.Join(out.writeRun(), os.RemoveAll(out.file(dirNetwork)))
}

// network is where a job runs.
type network interface {
	// runJob places the order, unless that was done before a restart, and returns when the books are closed.
	runJob(ctx context.Context, order market.Order) (*Summary, error)
	client() *client.Client                        // of the consumer
	links(ctx context.Context) ([]api.Link, error) // who fetched from whom so far, as far as it is known
	stop() error
}

func startNetwork(ctx context.Context, out *OutDir, b *Blueprint, opt TrainOptions, w *watch) (network, error) {
	if opt.Network != "" {
		return startRemote(ctx, out, b, opt)
	}
	return startEmbedded(ctx, out, b, opt, w)
}

// prepare makes a folder ready for a fresh run, or checks that the run in it is the one to go on with.
func (o *OutDir) prepare(b *Blueprint, opt TrainOptions) error {
	switch {
	case o.Run.ID == "":
		return o.start(opt.Job, runFile{ID: b.JobID(), Dishonest: opt.Dishonest})
	case o.Run.Finished:
		return fmt.Errorf("%w: %s", ErrFinished, o.Path)
	case !opt.Resume:
		return fmt.Errorf("%w: %s", ErrUnfinished, o.Path)
	case o.Run.ID != b.JobID():
		return fmt.Errorf("%w: %s is for %s, the job file and its data now give %s", ErrOtherJob, o.Path, o.Run.ID, b.JobID())
	}
	return nil
}

// screens are the values of strategy.verification.screen.
var screens = map[string]run.Screen{"off": run.ScreenOff, "updates": run.ScreenUpdates, "losses": run.ScreenLosses}

// auditPPM is the floor of the audit rate that a job asks for.
func auditPPM(v job.Verification) uint32 {
	if v.Mode == "none" {
		return 0
	}
	return uint32(v.Fraction*1e6 + 0.5)
}

// checks are what the job file says about verification.
func (b *Blueprint) checks() engine.Checks {
	v := b.Job.Strategy.Verification
	return engine.Checks{
		AuditPPM: auditPPM(v), Drawn: v.Segments == "drawn", Screen: screens[v.Screen], Tolerance: tolerance(b.Job), Slices: b.Slices,
	}
}

// order is what the consumer asks the chain for, but for what is known only once the blobs are stored.
func (b *Blueprint) order() (market.Order, error) {
	j := b.Job
	w := j.Strategy.Workers
	return market.Order{
		ID: b.JobID(), Budget: uint64(j.Budget.MaxCost), PriceCap: uint64(j.Budget.MaxPrice),
		Workers:   market.Workers{Min: uint32(w.Min), Target: uint32(w.Target), Max: uint32(w.Max)},
		Verifiers: uint32(j.Strategy.Verification.Verifiers), Terms: engine.Terms(b.JobID(), b.Spec, b.Step.Flops(), b.checks()),
	}, nil
}

// embeddedAsk is what the parties of an embedded network ask for in uzen per 10^15 floating-point operations: as much as the job pays, at most.
func embeddedAsk(o market.Order) uint64 { return min(embeddedPrice, o.PriceCap) }

// embeddedOrder is the order of a job on an embedded network, with one verifier unless the job file says how many: an error that wraps ErrBudget, if the whole job may cost more there than
// its budget.
func (b *Blueprint) embeddedOrder() (market.Order, error) {
	o, err := b.order()
	if err != nil {
		return o, err
	}
	if !b.Job.Given("strategy.verification.verifiers") {
		o.Verifiers = embeddedVerifiers
	}
	price := embeddedAsk(o)
	if _, whole := market.Quote(o.Terms, price, o.Verifiers); o.Budget < whole {
		return o, fmt.Errorf("%w: %d uzen, and the job may cost up to %d at %d uzen per 10^15 operations", ErrBudget, o.Budget, whole, price)
	}
	return o, nil
}
