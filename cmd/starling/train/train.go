// Package train is starling train: it trains a job on a network of this process or on another, and shows its
// progress. The run itself is in node.
package train

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/executor"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/quote"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/accelerator/admission"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/answers"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/torch"
)

// flags are what a run is begun with, or gone on with.
type flags struct {
	set       []string
	dir       string
	resume    bool
	yes       bool
	noInput   bool
	workers   int
	dishonest int
	network   string
	home      string
	listen    []string
	metrics   string
	web       string
	noWeb     bool
	dryRun    bool
	plan      string
	torch     torch.Options
	device    admission.Choice
}

// Command is starling train.
func Command(c *terminal.Console) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "train JOB.yaml",
		Short: "Run a training job",
		Long: `Run a training job on an embedded network: one validator, the job's workers and a verifier, each with its own
keys, network host and blob store, in this process and on the loopback interface. Nothing has to be set up, and no
party is trusted: work is sampled, done again, disputed and paid as on a network of strangers.

The output folder gets the model (loadable by Hugging Face tools), metrics.jsonl, lineage.jsonl,
receipts.jsonl, report.html, summary.json and starling.log; of a job with
encrypt_data, data.key and releases.jsonl, too. With -o json, standard output carries
the content of summary.json. There, "diverged" says why the model is worth nothing: its loss rose far
above that of the start, which is a warning, or it reached a loss or a weight that is infinite or not a
number, which ends the run with exit code 11; what was attested before is kept.

While it runs, a dashboard shows it at the address that is printed; starling web shows it later.

--dry-run starts nothing and says what the job will take; it names the plan, and --plan refuses the job if its file or
its data have changed since. With -o json: {"id","name","parameters","tokens","steps","rounds","workers",
"flops","most_uzen","expected_uzen","budget_uzen","stakes","step_seconds","seconds","memory_bytes","disk_bytes",` +
			`"free_disk_bytes","round_bytes","begin_bytes","executor","notes","placement":
{"workers","verifiers","memory_bytes","free_bytes","fits"},"quote","work":{"units","audits","evaluation","bytes",
"chain","challenges"}}, where work is what the seconds consist of; the placement is this machine's, and with
--network there is the quote of starling market quote instead, whose exit codes hold.

A job with executor: torch is trained in PyTorch here, in a child process for each worker that has no network and
sees none of your files; the --executor flags say where PyTorch is. On a network, workers say that for themselves.

A file with experts is several jobs. All are trained, on a network at the same time, and the output folder is a mixture
of their models; -o json has {"dir","experts":[{"name","path","summary"}]}.

The first Ctrl-C stops cleanly; --resume continues from the last attested checkpoint.`,
		Example: `  starling train examples/quickstart.yaml
  starling train job.yaml --set training.max_steps=640 --set output.dir=out/long
  starling train examples/quickstart.yaml --dry-run
  starling train examples/quickstart.yaml --dishonest 1
  starling train job.yaml --network http://127.0.0.1:26601 --home net/consumer`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), c, args[0], f) },
	}
	usage.MetricsFlag(cmd, &f.metrics)
	executor.Flags(cmd, &f.torch)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	fl.StringVar(&f.dir, "dir", "", "output folder, in place of the job's output.dir")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what the job will take: cost, time, memory, disk, traffic, and on a "+
		"network who would train it and why others would not; start nothing")
	fl.StringVar(&f.plan, "plan", "", "identifier of a plan of --dry-run: refuse the job if it is another by now")
	fl.BoolVar(&f.resume, "resume", false, "continue the unfinished run in the output folder")
	fl.BoolVarP(&f.yes, "yes", "y", false, "answer every question with yes")
	fl.BoolVar(&f.noInput, "no-input", false, "never ask")
	fl.IntVar(&f.workers, "workers", 0, "number of workers, in place of the job's strategy.workers")
	fl.Var(&f.device, "device", "what the workers of the embedded network compute on: cpu; auto, a GPU with the same "+
		"bits if there is one; opencl or opencl:N, the first or the Nth device (docs/devices.md)")
	fl.IntVar(&f.dishonest, "dishonest", 0, "number of workers that skip their training and make up what they submit; "+
		"with parallel, that send false values")
	fl.StringVar(&f.network, "network", "", "run on the network of this validator, such as http://127.0.0.1:26601, or "+
		"these, separated by commas, in place of an embedded one")
	fl.StringVar(&f.home, "home", "", "with --network: folder of the account that pays")
	fl.StringVar(&f.web, "web", dashboard.DefaultWeb,
		"address of the dashboard while the run lasts: host:port of the loopback; a free port if this one is taken")
	fl.BoolVar(&f.noWeb, "no-web", false, "open no dashboard")
	fl.StringSliceVar(&f.listen, "listen", nil, "with --network: multiaddrs at which workers fetch the job (default: "+
		"any port of the loopback)")
	return cmd
}

// accelerator opens the device of the workers.
func (f *flags) accelerator(ctx context.Context, c *terminal.Console) (*shared.Device, error) {
	if f.network != "" && !f.device.Processor() {
		return nil, terminal.WithExit(&terminal.Problem{
			Code: "USAGE", What: "--device and --network are given", Why: "workers of a network choose theirs",
			Fix: "leave one of them out",
		}, terminal.ExitUsage)
	}
	return shared.Open(ctx, admission.Options{Choice: f.device, Say: c.Say}, nil)
}

func run(ctx context.Context, c *terminal.Console, path string, f flags) error {
	if f.workers != 0 {
		f.set = append(f.set, fmt.Sprintf("strategy.workers=%d", f.workers))
	}
	if (f.network == "") != (f.home == "") && !f.dryRun {
		return terminal.WithExit(&terminal.Problem{
			Code: "USAGE", What: "--network and --home go together", Why: "a job on a network is paid from an account there",
			Fix: "give both, such as --network http://127.0.0.1:26601 --home net/consumer",
		}, terminal.ExitUsage)
	}
	jobs, err := jobfile.LoadAll(ctx, c, path, f.set)
	if err != nil {
		return err
	}
	if jobs[0].Executor == spec.Torch && f.network == "" {
		if err := executor.ConfirmReduced(c, &f.torch, true); err != nil { // train has no file of flags
			return err
		}
	}
	for _, j := range jobs {
		if f.dir != "" {
			j.Output.Dir = filepath.Join(f.dir, j.Expert)
		}
	}
	if f.dryRun {
		return f.plans(ctx, c, jobs, path)
	}
	device, err := f.accelerator(ctx, c)
	if err != nil {
		return err
	}
	defer device.Close()
	if f.noWeb {
		f.web = ""
	} else if err := terminal.CheckListen("--web", f.web, dashboard.DefaultWeb); err != nil {
		return err
	}
	if len(jobs) > 1 {
		return f.trainExperts(ctx, c, path, jobs, device)
	}
	return f.trainOne(ctx, c, path, jobs[0], device)
}

// plans says what each job will take.
func (f flags) plans(ctx context.Context, c *terminal.Console, jobs []*job.Job, path string) error {
	for _, j := range jobs {
		again := f.again()
		if len(jobs) > 1 {
			again += " --set expert=" + j.Expert
		}
		if err := quote.Plan(ctx, c, j, path, f.network, again, f.torch); err != nil {
			return err
		}
	}
	return nil
}

func (f flags) trainOne(ctx context.Context, c *terminal.Console, path string, j *job.Job,
	device *shared.Device) error {
	dir := j.Output.Dir
	resume, err := f.agree(dir)
	if err != nil {
		return err
	}
	progress := newProgress(c)
	opt := f.options(j, device, progress)
	opt.Resume = resume
	summary, err := node.Train(ctx, opt)
	progress.Done()
	if err != nil {
		return f.failed(ctx, path, j, err)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(summary, dir))
	}
	prompt := "The"
	if len(j.Eval.Prompts) > 0 {
		prompt = j.Eval.Prompts[0]
	}
	printSummary(summary, dir, prompt, &j.Spec)
	return nil
}

func newProgress(c *terminal.Console) *terminal.Progress {
	return terminal.NewProgress(os.Stderr, terminal.ModeFor(os.Stderr, c.Quiet || c.Form.Machine()),
		terminal.Width(os.Stderr))
}

// options are those of the run of a job, which shows its progress.
func (f flags) options(j *job.Job, device *shared.Device, progress *terminal.Progress) consumer.Options {
	for _, n := range j.Notes {
		progress.Say(time.Now(), n.Place+": "+n.Text)
	}
	return consumer.Options{
		Job: j, Dir: j.Output.Dir, Torch: f.torch, Device: device, Dishonest: f.dishonest,
		Network: f.network, Home: f.home, Listen: f.listen,
		Metrics: f.metrics, Web: f.web, Plan: f.plan, Version: version.Binary(),
		Progress: func(p consumer.Progress) { progress.Show(time.Now(), update(p)) },
		Say:      func(text string) { progress.Say(time.Now(), text) },
	}
}

// failed explains why a run ended without a model.
func (f flags) failed(ctx context.Context, path string, j *job.Job, err error) error {
	if short := (*member.ShortageError)(nil); f.network == "" && errors.As(err, &short) {
		return quote.DiskTooSmall(j, path, f.again(), short)
	}
	if f.network == "" && errors.Is(err, prepare.ErrMemory) {
		return quote.MemoryTooSmall(j, path, f.again(), err)
	}
	return terminal.IfInterrupted(ctx, cause.Train(err),
		fmt.Sprintf("starling train %s%s --resume", jobfile.Word(path), f.again()))
}

func update(p consumer.Progress) terminal.Update {
	return terminal.Update{
		Job: p.Job, Step: p.Step, MaxSteps: p.Steps, Round: p.Round, Rounds: p.Rounds, Loss: p.Loss, EvalLoss: p.EvalLoss,
		Measured: p.Latest.Measured, LearningRate: p.LearningRate, GradNorm: p.GradNorm,
		TokensPerSecond: p.TokensPerSecond, Workers: p.Workers,
		WorkersTarget: p.Target,
		Coin:          p.Coin, Cost: p.PaidUzen, Budget: p.BudgetUzen, Left: p.Left, HasLeft: p.Left > 0, Phase: p.Phase,
	}
}

// again are the flags with which a run is begun, or gone on with.
func (f flags) again() string {
	var flags strings.Builder
	flags.WriteString(jobfile.SetFlags(f.set))
	if f.dishonest > 0 {
		fmt.Fprintf(&flags, " --dishonest %d", f.dishonest)
	}
	if !f.device.Processor() {
		flags.WriteString(" --device " + f.device.String())
	}
	for _, x := range []struct{ name, value string }{{"dir", f.dir}, {"network", f.network}, {"home", f.home}} {
		if x.value != "" {
			fmt.Fprintf(&flags, " --%s %s", x.name, jobfile.Word(x.value))
		}
	}
	return flags.String()
}

// agree decides, from the files in the output folder, whether the run is resumed.
func (f flags) agree(dir string) (resume bool, err error) {
	err = rundir.Probe(dir)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, rundir.ErrFinished):
		return false, terminal.WithExit(&terminal.Problem{
			Code: "OUTPUT_FINISHED", What: "the output folder " + dir + " holds a finished run",
			Why: "starling never overwrites a model", Fix: "give another folder with --dir, or remove this one",
		}, terminal.ExitConflict)
	case !errors.Is(err, rundir.ErrUnfinished):
		return false, err
	case f.resume || f.yes:
		return true, nil
	}
	if !f.noInput && terminal.IsTerminal(os.Stdin) && terminal.IsTerminal(os.Stderr) {
		fmt.Fprintf(os.Stderr, "%s holds an unfinished run. Continue it? [Y/n] ", dir)
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a == "" || a == "y" || a == "yes" {
			return true, nil
		}
	}
	return false, terminal.WithExit(&terminal.Problem{
		Code: "OUTPUT_UNFINISHED", What: "the output folder " + dir + " holds an unfinished run",
		Why: "starting over would delete it",
		Fix: "continue with --resume, give another folder with --dir, or remove this one",
	}, terminal.ExitConflict)
}

func printSummary(s *rundir.Summary, dir, prompt string, j *spec.Spec) {
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	unit := terminal.LossUnit(s.FinalMeasured) + terminal.Positive(s.BitsPerByte,
		func(x float64) string { return fmt.Sprintf(" a token (%.3f bits a byte)", x) })
	fmt.Fprintf(w, "eval loss   %s -> %s%s, %d steps in %d rounds on %d workers\n",
		terminal.Loss(s.FirstEvalLoss), terminal.Loss(s.FinalEvalLoss), unit, s.Steps, s.Rounds, s.Workers)
	for _, name := range slices.Sorted(maps.Keys(s.FinalMeasured)) {
		of := "on held-out examples"
		if answers.Drawn(name) {
			of = "of drawn answers"
		}
		fmt.Fprintf(w, "%-11s %.4f %s\n", name, s.FinalMeasured[name], of)
	}
	if s.Diverged != "" {
		fmt.Fprintf(w, "warning     the training diverged: %s; lower training.learning_rate\n", s.Diverged)
	}
	fmt.Fprintf(w, "audits      %v\n", s.Audits)
	for _, d := range s.Disputes {
		fmt.Fprintf(w, "dispute     round %d: %s: %s\n", d.Round, d.Worker, d.Verdict)
	}
	fmt.Fprintf(w, "cost        %s paid + %s fee, %s of %s refunded\n", s.Coin.Amount(s.PaidUzen),
		s.Coin.Amount(s.FeeUzen), s.Coin.Amount(s.RefundedUzen), s.Coin.Text(s.BudgetUzen))
	if s.SlashedUzen > 0 {
		fmt.Fprintf(w, "slashed     %s ZEN\n", terminal.Zen(s.SlashedUzen))
	}
	if s.PeakMemory > 0 {
		fmt.Fprintf(w, "memory      %s at most, of this process\n", terminal.Bytes(s.PeakMemory))
	}
	fmt.Fprintf(w, "state root  %s\n", s.StateRoot)
	fmt.Fprintf(w, "output      %s\n", dir)
	fmt.Fprintf(w, "report      %s\n\n", filepath.Join(dir, "report.html"))
	fmt.Fprintf(w, "next: starling job verify %s\n", dir)
	switch {
	case j.Task == spec.TaskEmbed:
		fmt.Fprintf(w, "      starling model embed %s --text \"...\" --text \"...\"\n", dir)
	case j.Task == spec.TaskDiffusion:
		fmt.Fprintf(w, "      starling model sample %s --out drawn.png\n", dir)
	case j.ClassifiesText() || j.Task == spec.TaskReward:
		fmt.Fprintf(w, "      starling model classify %s --text \"...\"\n", dir)
	case j.Task == spec.TaskClassify:
		fmt.Fprintf(w, "      starling model classify %s IMAGE.png\n", dir)
	case j.ReadsText():
		fmt.Fprintf(w, "      starling model generate %s --prompt %q --tokens 100\n      starling model serve %s\n", dir,
			prompt, dir)
	}
	fmt.Fprintf(w, "      starling web %s\n", dir)
}
