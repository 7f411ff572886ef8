package consumer

import (
	"fmt"
	"time"

	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/push"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/node/tracking/mlflow"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/reason"
)

// Options say how a job is run.
type Options struct {
	Job     *job.Job
	Dir     string   // output folder
	Plan    string   // identifier of the job as it was planned; "": it was not
	Resume  bool     // resume the unfinished run in Dir
	Network string   // HTTP interface of a validator; "": an embedded network
	Home    string   // folder of the consumer's key on a Network
	Listen  []string // multiaddrs at which a Network's workers fetch the job; none: any port of the loopback
	// on a Network: that pays, with a connection and a host that several jobs share; nil: that of Home
	Account   *account.Account
	Mark      string                 // tells the job from others of the Account that are the same
	Ordering  func() error           // called before the order is placed, which an error prevents; may be nil
	Ordered   func(job string) error // called when the network has the order, under its name; may be nil
	Preparing chan struct{}          // holds an element for each job that is being prepared; nil: any may be
	Torch     torch.Options          // of the workers of an embedded network, if the job asks for PyTorch
	Device    *shared.Device         // of the workers of an embedded network; nil: they compute on the processor
	Dishonest int                    // workers of an embedded network that fabricate their updates
	Metrics   string                 // host:port where Prometheus finds metrics; "": nowhere
	Web       string                 // host:port of the dashboard during the run; "": none
	Version   string                 // of the binary
	Progress  func(Progress)
	Say       func(text string) // news worth a line of its own
	MLflow    *mlflow.Writer    // gets the metrics; may be nil
	Notify    *notify.Sender    // sends events; may be nil
	Push      *push.Sender      // copies the model, and checkpoints; may be nil
	Shown     func(runs.Live)   // gets the data of the run that are not in its files, once
	Disk      disk.Share        // of every party of an embedded network; zero: an equal part of the free disk
}

// Progress is the state of a run at one moment. A loss that is not known is NaN.
type Progress struct {
	Job                  string
	Step, Steps          int // inner steps in attested rounds
	Round, Rounds        int
	Phase                string
	Loss, EvalLoss       float64
	LearningRate         float64
	GradNorm             float64 // before clipping, the mean over the latest round; NaN: no unit reports one
	TokensPerSecond      float64
	Workers, Target      int
	Coin                 coin.Coin // of the next two, in its grains
	PaidUzen, BudgetUzen uint64
	Latest               rundir.Metric // of the latest round, with the latest measurements
	Left                 time.Duration
	Waits                *api.Reason // why the order is not matched yet; nil: it is, or that is not known
}

// HaltedError says that a run ended before its last round.
type HaltedError struct {
	Why string // reason code of protocol/run
}

func (e *HaltedError) Error() string { return "the run halted: " + e.Why }

// Fix says what to do.
func (e *HaltedError) Fix() string {
	switch e.Why {
	case reason.BudgetExhausted:
		return "raise budget.max_cost; what is trained so far is in the output folder"
	case reason.NoWorkers:
		return "start again with more workers: all of these left or were excluded"
	case reason.NoVerifiers:
		return "start again with more verifiers: all of these left or were excluded"
	}
	return "see starling.log in the output folder"
}

// ExitCode is the exit code that a command ends with.
func (e *HaltedError) ExitCode() int {
	switch e.Why {
	case reason.BudgetExhausted:
		return 6
	case reason.NoWorkers, reason.NoVerifiers:
		return 7
	}
	return 11
}

// EndedError says that the order of a job ended before members were found for it.
type EndedError struct {
	Why string // cancelled or expired
}

func (e *EndedError) Error() string { return "the order ended without a run: " + e.Why }

// Fix says what to do.
func (e *EndedError) Fix() string {
	return "its budget is released; order it again, with a later budget.deadline or a higher budget.max_price"
}

// ExitCode is the exit code that a command ends with.
func (e *EndedError) ExitCode() int {
	if e.Why == chainmarket.Expired {
		return 7
	}
	return 11
}

// Prepare makes a folder ready for a fresh run, or checks that the run in it is the one to resume.
func Prepare(o *rundir.OutDir, b *prepare.CompiledJob, opt Options) error {
	switch {
	case o.Run.ID == "":
		return o.Start(opt.Job, rundir.RunFile{ID: b.JobID(), Dishonest: opt.Dishonest, Numerics: b.Spec.Numerics})
	case o.Run.Finished:
		return fmt.Errorf("%w: %s", rundir.ErrFinished, o.Path)
	case !opt.Resume:
		return fmt.Errorf("%w: %s", rundir.ErrUnfinished, o.Path)
	case !b.Is(o.Run.ID):
		return fmt.Errorf("%w: %s is for %s, the job file and its data now give %s", rundir.ErrOtherJob, o.Path, o.Run.ID,
			b.JobID())
	}
	return nil
}

// warns tells of the network, if it is that of others.
func warns(o Options) func(string) {
	if o.Say == nil || o.Network == "" {
		return func(string) {}
	}
	return o.Say
}

// sayLocked reports the coins that an unmatched order keeps locked, when the consumer stops waiting.
func (c *Consumer) sayLocked() {
	if c.waits && c.Options.Network != "" {
		c.once(fmt.Sprintf("the order stays open, with its budget locked: starling job cancel %s --network %s --home %s "+
			"gives it back", c.Job.JobID(), c.Options.Network, c.Options.Home))
	}
}
