package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim"
)

type simFlags struct {
	set, sweep    []string
	seed          uint64
	links         []string
	gflops        []float64
	verifiers     int
	validators    int
	block         time.Duration
	acts          []string
	crashes, cuts []string
	dir, events   string
	threads       int
	modelled      bool
	advise        bool
	price         float64
}

func simCommand(c *terminal.Console) *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim JOB.yaml",
		Short: "Play a job under virtual time, on any network",
		Long: `Play the job of a job file on a simulated network: the same chain application, roles, training and
exchange as in starling train, with links, machines and clocks that are simulated. Losses are real,
because the mathematics is done; seconds are virtual. A job ends here with the state root that it has
in starling train, and the same seed gives the same run, event by event. Whether money is conserved,
and nothing is paid twice, is checked from outside after every block.

Links are lan, metro, home, bad or global, or settings in Mbit/s, one way, and a probability:
up=20,down=100,latency=50ms,loss=0.01. Several links, or several speeds, go to the workers in turn.
Parties are worker-0, worker-1 ... and verifier-0 ...; what those who break the rules can do is
` + strings.Join(adversary.Names(), ", ") + `.

--advise plays nothing and ranks strategies for the job by formulas, in seconds: bytes, time, utilisation, tokens a
second, what is carried from round to round, cost, and what is known of their price in loss, with a line of --set for
the best.

--modelled lets something small stand in for the mathematics, so that a job of any size can be played: bytes,
times, pay, faults and audits are those of the job, and there are no losses.

--sweep plays the job once for each value, and for each combination of several sweeps. With --dir, each simulation
leaves simulation.json, report.html, its charts as SVG (loss by step, by bytes and by virtual time), rounds.csv,
metrics.jsonl, receipts.jsonl, disputes.jsonl and lineage.jsonl, the same bytes for the same seed. A sweep leaves them
in folders 000, 001 ..., and a report.html, its charts and sweep.csv that compare them.`,
		Example: `  starling sim examples/quickstart.yaml
  starling sim job.yaml --link bad --gflops 20,20,5 --dir out/sim
  starling sim job.yaml --modelled --link up=20,down=100,latency=50ms --gflops 20000,10000
  starling sim job.yaml --advise --link up=20,down=100 --gflops 2000,500
  starling sim job.yaml --sweep strategy.sync_steps=5,10,20,40 --sweep seed=1,2,3 --dir out/sweep
  starling sim job.yaml --act worker-1=skips --crash worker-2@60s+30s --cut worker-0/worker-3@10s+2m`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error { return runSim(c, cmd, args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	fl.StringArrayVar(&f.sweep, "sweep", nil, "play the job for each value of a key: KEY=VALUE,VALUE; null takes the "+
		"key out of the file (repeatable)")
	fl.Uint64Var(&f.seed, "seed", 1, "of latencies, losses and whatever else is drawn")
	fl.StringArrayVar(&f.links, "link", []string{"home"},
		"link of the workers, in turn; the first is everybody else's, too (repeatable)")
	fl.Float64SliceVar(&f.gflops, "gflops", []float64{50},
		"speeds of the workers, in turn: 10^9 floating-point operations a second")
	fl.IntVar(&f.verifiers, "verifiers", 0, "verifiers beside the one that every job has")
	fl.IntVar(&f.validators, "validators", 4, "number of validators")
	fl.DurationVar(&f.block, "block-time", time.Second, "time from block to block")
	fl.StringArrayVar(&f.acts, "act", nil, "who breaks the rules, and how: PARTY=ACT (repeatable)")
	fl.StringArrayVar(&f.crashes, "crash", nil, "who crashes, when, and for how long: PARTY@30s+20s (repeatable)")
	fl.StringArrayVar(&f.cuts, "cut", nil, "which two cannot reach each other: PARTY/PARTY@30s+20s (repeatable)")
	fl.BoolVar(&f.modelled, "modelled", false, "let something small stand in for the mathematics: bytes, times and pay "+
		"of a job of any size, and no losses")
	fl.BoolVar(&f.advise, "advise", false, "rank strategies for these links and speeds, and play nothing")
	fl.Float64Var(&f.price, "price", 0.02, "with --advise: how much more loss than that of data-parallel training the "+
		"best may have")
	fl.StringVar(&f.dir, "dir", "", "folder for the results")
	fl.StringVar(&f.events, "events", "", "file for a line about everything that happens")
	fl.IntVar(&f.threads, "threads", kernel.Cores, "threads of the mathematics; results do not depend on it")
	cmd.AddCommand(simStrategiesCommand(c), simAttacksCommand(c), simNetworksCommand(c))
	return cmd
}

// variant is one simulation of a sweep.
type variant struct {
	Settings map[string]string `json:"settings,omitempty"`
	*simulate.Simulation
}

func runSim(c *terminal.Console, cmd *cobra.Command, path string, f simFlags) error {
	opt, err := f.options()
	if err != nil {
		return usage.Error(cmd, err)
	}
	if f.advise {
		return advise(c, cmd, path, f, opt)
	}
	settings, err := sweeps(f.sweep)
	if err != nil {
		return usage.Error(cmd, err)
	}
	if f.events != "" {
		file, err := os.Create(f.events)
		if err != nil {
			return err
		}
		defer file.Close()
		opt.Events = func(line string) { fmt.Fprintln(file, line) }
	}
	dirs := f.folders(len(settings))
	if err := vacant(append(dirs, f.whole(dirs)...)); err != nil {
		return err
	}
	jobs, err := f.jobs(path, settings)
	if err != nil {
		return terminal.WithExit(err, terminal.ExitUsage)
	}
	var done []variant
	for i, setting := range settings {
		if opt.Job = jobs[i]; len(jobs) > 1 && !c.Quiet && !c.Form.Machine() {
			fmt.Fprintf(os.Stderr, "variant %d of %d: %s\n", i+1, len(jobs), strings.Join(pairs(setting), " "))
		}
		v, err := playVariant(cmd.Context(), c, opt, setting)
		if err != nil {
			if failed := printDone(c, done, dirs, f); failed != nil { // what was played of a sweep is not lost
				return failed
			}
			return err
		}
		if len(dirs) > 0 {
			if err := v.Write(dirs[i]); err != nil {
				return err
			}
		}
		done = append(done, v)
		for _, dir := range f.whole(dirs) { // after every variant, so that what is done of a long sweep can be looked at
			if err := compare(done, settings, dirs).Write(dir); err != nil {
				return err
			}
		}
	}
	return printDone(c, done, dirs, f)
}

// printDone prints what was played; nothing if nothing was.
func printDone(c *terminal.Console, done []variant, dirs []string, f simFlags) error {
	switch {
	case len(done) == 0:
		return nil
	case c.Form.Machine():
		return c.Form.Print(os.Stdout, simAnswer(done, dirs, len(f.sweep) > 0))
	}
	return printVariants(done, f.sweep)
}

// jobs are those of all variants of a sweep. What is wrong with any of them is found before the first is played.
func (f simFlags) jobs(path string, settings [][][2]string) (jobs []*job.Job, err error) {
	var all job.ErrorList
	for _, setting := range settings {
		j, err := jobfile.Load(path, slices.Concat(f.set, pairs(setting)))
		var wrong *job.ErrorList
		switch {
		case errors.As(err, &wrong):
			for _, e := range wrong.Errors {
				if about := *e; len(setting) > 0 {
					about.What = "with " + strings.Join(pairs(setting), " and ") + ": " + e.What
					e = &about
				}
				all.Errors = append(all.Errors, e)
			}
		case err != nil:
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if len(all.Errors) > 0 {
		return nil, &all
	}
	return jobs, nil
}

// pairs are settings as --set has them.
func pairs(setting [][2]string) (set []string) {
	for _, s := range setting {
		set = append(set, s[0]+"="+s[1])
	}
	return set
}

// folders are where the results of so many simulations go; none if they go nowhere.
func (f simFlags) folders(n int) []string {
	switch {
	case f.dir == "":
		return nil
	case n == 1:
		return []string{f.dir}
	}
	dirs := make([]string, n)
	for i := range dirs {
		dirs[i] = filepath.Join(f.dir, fmt.Sprintf("%03d", i))
	}
	return dirs
}

// whole is the folder of what compares the simulations in so many folders, if there is one.
func (f simFlags) whole(dirs []string) []string {
	if len(dirs) < 2 {
		return nil
	}
	return []string{f.dir}
}

// compare is what is done of a sweep.
func compare(done []variant, settings [][][2]string, dirs []string) simulate.Sweep {
	var w simulate.Sweep
	for _, s := range settings[0] {
		w.Keys = append(w.Keys, s[0])
	}
	for i, v := range done {
		one := simulate.SweepVariant{Name: filepath.Base(dirs[i]), Simulation: v.Simulation}
		for _, s := range settings[i] {
			one.Settings = append(one.Settings, s[1])
		}
		w.Variants = append(w.Variants, one)
	}
	return w
}

// vacant reports the first folder that results cannot be written to.
func vacant(dirs []string) error {
	for _, dir := range dirs {
		err := rundir.Probe(dir)
		if _, none := os.Stat(filepath.Join(dir, "simulation.json")); err == nil && none == nil {
			err = rundir.ErrFinished
		}
		if errors.Is(err, rundir.ErrFinished) || errors.Is(err, rundir.ErrUnfinished) {
			return terminal.WithExit(&terminal.Problem{
				Code: "OUTPUT_CONFLICT", What: fmt.Sprintf("%v: %s", err, dir), Why: "starling never overwrites a model",
				Fix: "give another folder with --dir",
			}, terminal.ExitConflict)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func playVariant(ctx context.Context, c *terminal.Console, opt simulate.Options, setting [][2]string) (v variant,
	err error) {
	for _, s := range setting {
		if v.Settings == nil {
			v.Settings = map[string]string{}
		}
		v.Settings[s[0]] = s[1]
	}
	if !c.Quiet && terminal.IsTerminal(os.Stderr) {
		opt.Progress = func(round, rounds int, at time.Duration) {
			fmt.Fprintf(os.Stderr, "\rround %d of %d at %s   ", round, rounds, at.Round(time.Second))
			if round == rounds {
				fmt.Fprint(os.Stderr, "\r\033[K")
			}
		}
	}
	if v.Simulation, err = simulate.Run(ctx, opt); err != nil {
		return v, simError(ctx, err)
	}
	v.Simulation.Sweep = pairs(setting)
	return v, nil
}

// simError gives the errors of a simulation their codes.
func simError(ctx context.Context, err error) error {
	if err = cause.Explain(terminal.IfInterrupted(ctx, err, "")); terminal.Explained(err) {
		return err
	}
	return &terminal.Problem{
		Code: "SIM_FAILED", What: "the simulation broke off", Why: err.Error(),
		Fix: "play it again with --events FILE, which says what happened before; a rule that is broken is a bug worth a " +
			"report",
	}
}

// options reads the flags.
func (f simFlags) options() (o simulate.Options, err error) {
	o = simulate.Options{
		Seed: f.seed, Gflops: f.gflops, Verifiers: f.verifiers, Validators: f.validators, BlockTime: f.block,
		Threads:  f.threads,
		Modelled: f.modelled, Acts: map[string]string{},
	}
	if f.verifiers < 0 || f.validators < 1 || f.validators > 100 || f.threads < 1 || f.block < 10*time.Millisecond {
		return o, fmt.Errorf("there are 1 to 100 validators, no negative number of verifiers, at least one thread, and at " +
			"least 10ms from block to block")
	}
	for _, g := range f.gflops {
		if !(g > 0 && g < 1e9) {
			return o, fmt.Errorf("--gflops %v: a speed is above 0 and below 10^9", g)
		}
	}
	for _, text := range f.links {
		l, err := sim.ParseLink(text)
		if err != nil {
			return o, fmt.Errorf("--link: %w", err)
		}
		o.Links = append(o.Links, l)
	}
	for _, text := range f.acts {
		who, name, _ := strings.Cut(text, "=")
		if _, ok := adversary.Named(name); !ok {
			return o, fmt.Errorf("--act %s: acts are %s", text, strings.Join(adversary.Names(), ", "))
		}
		o.Acts[who] = name
	}
	for _, text := range f.crashes {
		fault, err := parseFault(text)
		if err != nil {
			return o, fmt.Errorf("--crash %s: %w", text, err)
		}
		o.Faults = append(o.Faults, fault)
	}
	for _, text := range f.cuts {
		fault, err := parseFault(text)
		who, from, ok := strings.Cut(fault.Who, "/")
		if err != nil || !ok {
			return o, fmt.Errorf("--cut %s: it has the form PARTY/PARTY@30s+20s", text)
		}
		fault.Who, fault.From = who, from
		o.Faults = append(o.Faults, fault)
	}
	return o, nil
}

// parseFault reads WHO@AT+FOR.
func parseFault(text string) (f sim.Fault, err error) {
	who, when, ok := strings.Cut(text, "@")
	at, during, and := strings.Cut(when, "+")
	if !ok || !and {
		return f, fmt.Errorf("it has the form PARTY@30s+20s")
	}
	f.Who = who
	if f.At, err = time.ParseDuration(at); err != nil {
		return f, err
	}
	f.For, err = time.ParseDuration(during)
	if err == nil && (f.At < 0 || f.For < 0) {
		err = fmt.Errorf("times are not negative")
	}
	return f, err
}

// sweeps returns every combination of the values of all sweeps, as pairs of key and value.
func sweeps(texts []string) ([][][2]string, error) {
	all := [][][2]string{nil}
	for _, text := range texts {
		key, values, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--sweep %s: it has the form KEY=VALUE,VALUE", text)
		}
		var next [][][2]string
		for _, setting := range all {
			for value := range strings.SplitSeq(values, ",") {
				next = append(next, append(setting[:len(setting):len(setting)], [2]string{key, value}))
			}
		}
		if all = next; len(all) > maxSweep {
			return nil, fmt.Errorf("--sweep: there are more than %d combinations", maxSweep)
		}
	}
	return all, nil
}

const maxSweep = 1000

func printVariants(done []variant, sweep []string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, text := range sweep {
		key, _, _ := strings.Cut(text, "=")
		fmt.Fprintf(w, "%s\t", strings.ToUpper(key[strings.LastIndex(key, ".")+1:]))
	}
	fmt.Fprint(w, "ROUNDS\tEVAL LOSS\tTIME\tUTILISATION\tMB UP\tMB DOWN\tPAID\tSLASHED\tDISPUTES\t")
	liars, _ := done[0].BrokeRules()
	if liars > 0 {
		fmt.Fprint(w, "BROKE RULES\tHAD TO LEAVE\t")
	}
	fmt.Fprintln(w, "STATE ROOT")
	for _, v := range done {
		for _, text := range sweep {
			key, _, _ := strings.Cut(text, "=")
			fmt.Fprintf(w, "%s\t", v.Settings[key])
		}
		ended, loss, root := fmt.Sprint(v.Rounds), fmt.Sprintf("%.4f", v.FinalEvalLoss), v.StateRoot.Short()
		if v.Modelled {
			loss, root = "-", "-"
		}
		if v.Halted != "" {
			ended += " (" + v.Halted + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f %%\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t", ended, loss, tenths(v.Seconds), 100*v.Utilisation,
			float64(v.BytesUp)/1e6, float64(v.BytesDown)/1e6, zen(v.PaidUzen), zen(v.SlashedUzen), len(v.Disputes))
		if liars > 0 {
			n, out := v.BrokeRules()
			fmt.Fprintf(w, "%d\t%d\t", n, out)
		}
		fmt.Fprintln(w, root)
	}
	if err := w.Flush(); err != nil || len(done) > 1 {
		return err
	}
	return printParties(done[0].Simulation)
}

// tenths is a time in tenths of a second.
func tenths(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second / 10)
}

// zen is an amount in uzen as a number of ZEN.
func zen(uzen uint64) float64 { return float64(uzen) / 1e6 }

func printParties(s *simulate.Simulation) error {
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTY\tMB UP\tMB DOWN\tWORKED\tPAID\tSLASHED\tOUT OF THE RUN")
	for _, p := range s.Parties {
		name, out := p.Name, p.Out
		if p.Act != "" {
			name += " (" + p.Act + ")"
		}
		if out != "" {
			out = fmt.Sprintf("after %s: %s", tenths(p.OutSeconds), out)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t%.2f\t%.2f\t%s\n", name, float64(p.BytesUp)/1e6, float64(p.BytesDown)/1e6,
			tenths(p.WorkedSeconds), zen(p.PaidUzen), zen(p.SlashedUzen), out)
	}
	return w.Flush()
}
