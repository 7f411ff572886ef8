// Package sim is starling sim: commands that play jobs on the simulator and show what came of it. The simulator is in
// node/simulate and sim.
package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/node/simulate/cohort"
	"github.com/starling-network/starling/role/adversary/catalog"
)

// Command is starling sim.
func Command(c *terminal.Console) *cobra.Command {
	var f options
	cmd := &cobra.Command{
		Use:   "sim JOB.yaml",
		Short: "Play a job under virtual time, on any network",
		Long: `Play the job of a job file on a simulated network: the same chain application, roles, training and
exchange as in starling train, with links, machines and clocks that are simulated. Losses are real,
because the mathematics is done; seconds are virtual. A job ends here with the state root that it has
in starling train, and the same seed gives the same run, event by event. Whether money is conserved,
and nothing is paid twice, is checked from outside after every block. The bytes of the table are those of all
parties together, over the whole run.

Links are lan, metro, home, bad or global, or settings in Mbit/s, one way, and a probability:
up=20,down=100,latency=50ms,loss=0.01. Several links, or several speeds, go to the workers in turn.
Parties are worker-0, worker-1 ... and verifier-0 ...; what those who break the rules can do is
` + strings.Join(catalog.Names(), ", ") + `.

--advise plays nothing and ranks strategies for the job by formulas, in seconds: bytes, time, utilisation, tokens a
second, what is carried from round to round, cost, and what is known of their price in loss, with a line of --set for
the best.

--modelled lets something small stand in for the mathematics, so that a job of any size can be played: bytes,
times, pay, faults and audits are those of the job, and there are no losses.

--sweep plays the job once for each value, and for each combination of several sweeps, and ranks the settings by their
eval loss, with the mean and the standard deviation over the seeds if seed is swept. With --dir, each simulation
leaves simulation.json, report.html, its charts as SVG (loss by step, by bytes and by virtual time), rounds.csv,
metrics.jsonl, receipts.jsonl, disputes.jsonl and lineage.jsonl, the same bytes for the same seed. A sweep leaves them
in folders 000, 001 ..., and a report.html, its charts and sweep.csv that compare them. --resume continues a sweep
that was cut off, with the same flags: what is done of it is read, and not played again. A file with experts is a sweep
over them.

Of a FederatedJob the coordinator and the owners are played, with the data of the folders of --data: owner-0, owner-1
and so on, and coordinator, are the parties of --crash and --cut. The model is that of starling job federated, to the
bit, if the same owners are in each sum and the job has no noise. Acts of owners are
` + strings.Join(cohort.Acts(), ", ") + `
(random bytes in place of a vector; a message after its phase). With -o json: the report of the coordinator, as
starling job federated serve prints it, with "seconds" and "parties".`,
		Example: `  starling sim examples/quickstart.yaml
  starling sim job.yaml --link bad --gflops 20,20,5 --dir out/sim
  starling sim job.yaml --modelled --link up=20,down=100,latency=50ms --gflops 20000,10000
  starling sim job.yaml --advise --link up=20,down=100 --gflops 2000,500
  starling sim job.yaml --sweep strategy.sync_steps=5,10,20,40 --sweep seed=1,2,3 --dir out/sweep
  starling sim examples/federated.yaml --data 'shops/*' --crash owner-2@30s+20s --act owner-1=late-vectors
  starling sim job.yaml --act worker-1=skips --crash worker-2@60s+30s --cut worker-0/worker-3@10s+2m`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if record.Recorded(args[0]) {
				return clientLeads(args[0])
			}
			if isFederated(args[0]) {
				return runOwners(cmd.Context(), c, cmd, args[0], f)
			}
			if len(f.data) > 0 || cmd.Flags().Changed("phase-timeout") {
				return usage.Error(cmd, errors.New("--data and --phase-timeout are of jobs of kind FederatedJob"))
			}
			return runSim(c, cmd, args[0], f)
		},
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
	fl.IntVar(&f.verifiers, "verifiers", 0, "verifiers in addition to the one that every job has")
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
	fl.StringArrayVar(&f.data, "data", nil, "folder of the data of an owner, or a pattern of such folders, of a "+
		"FederatedJob (repeatable)")
	fl.DurationVar(&f.phase, "phase-timeout", 30*time.Second, "how long a phase of a secure sum waits for an owner")
	fl.StringVar(&f.dir, "dir", "", "folder for the results")
	fl.BoolVar(&f.resume, "resume", false, "continue a sweep that was cut off: simulations that --dir holds are not "+
		"played again")
	fl.StringVar(&f.events, "events", "", "file for a line about everything that happens")
	fl.IntVar(&f.threads, "threads", kernel.Cores, "threads of the mathematics; results do not depend on it")
	cmd.AddCommand(strategiesCommand(c), attacksCommand(c), networksCommand(c))
	return cmd
}

// variant is one simulation of a sweep.
type variant struct {
	Settings map[string]string `json:"settings,omitempty"`
	*simulate.Simulation
}

// clientLeads says why a run that a client led is not played.
func clientLeads(dir string) error {
	return terminal.WithExit(&terminal.Problem{Code: "CLIENT_LEADS",
		What: dir + " is a run that a client led, which the simulator does not play",
		Why: "the client decides the data of each step after the result of the step before, and the run waits for it: " +
			"from a list of batches a simulation would have the bits that the network attested, and times that say nothing " +
			"of the loop",
		Fix: "execute it again with starling job verify " + dir + " --network URL; a job with sync_steps: 1 and as many " +
			"tokens a step shows how fast a network takes steps"}, terminal.ExitUsage)
}

func runSim(c *terminal.Console, cmd *cobra.Command, path string, f options) error {
	opt, err := f.read()
	if err != nil {
		return usage.Error(cmd, err)
	}
	if f.advise {
		return advise(c, cmd, path, f, opt)
	}
	f.sweepExperts(path)
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
	if f.resume && f.dir == "" {
		return usage.Error(cmd, errors.New("--resume reads what is done from a folder: give it with --dir"))
	}
	if err := vacant(append(dirs, f.whole(dirs)...), f.resume); err != nil {
		return err
	}
	jobs, err := f.jobs(cmd.Context(), c, path, settings)
	if err != nil {
		return terminal.WithExit(err, terminal.ExitUsage)
	}
	before, err := f.before(dirs, jobs, opt)
	if err != nil {
		return err
	}
	var done []variant
	began, played := time.Now(), 0
	for i, setting := range settings {
		v := variant{Settings: named(setting), Simulation: before[i]}
		if v.Simulation == nil {
			if opt.Job = jobs[i]; len(jobs) > 1 && !c.Quiet && !c.Form.Machine() {
				fmt.Fprintf(os.Stderr, "variant %d of %d%s: %s\n", i+1, len(jobs),
					left(time.Since(began), played, len(jobs)-len(before)), strings.Join(pairs(setting), " "))
			}
			if v.Simulation, err = play(cmd.Context(), c, opt, setting, f.again()); err != nil {
				if failed := printDone(c, done, dirs, f); failed != nil { // what was played of a sweep is not lost
					return failed
				}
				return err
			}
			if played++; len(dirs) > 0 {
				if err := v.Write(dirs[i]); err != nil {
					return err
				}
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

// left says how long the rest of a sweep takes, by this machine's clock, if its variants take as long as those that are
// done.
func left(took time.Duration, done, all int) string {
	if done == 0 {
		return ""
	}
	return fmt.Sprintf(", about %s left", (took / time.Duration(done) * time.Duration(all-done)).Round(time.Second))
}

// printDone prints what was played; nothing if nothing was.
func printDone(c *terminal.Console, done []variant, dirs []string, f options) error {
	switch {
	case len(done) == 0:
		return nil
	case c.Form.Machine():
		return c.Form.Print(os.Stdout, simAnswer(done, dirs, len(f.sweep) > 0))
	}
	return printVariants(done, f.sweep)
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

// named are settings by key; nil: there are none.
func named(setting [][2]string) map[string]string {
	if len(setting) == 0 {
		return nil
	}
	m := map[string]string{}
	for _, s := range setting {
		m[s[0]] = s[1]
	}
	return m
}

func play(ctx context.Context, c *terminal.Console, opt simulate.Options, setting [][2]string,
	again string) (*simulate.Simulation, error) {
	if !c.Quiet && terminal.IsTerminal(os.Stderr) {
		opt.Progress = func(round, rounds int, at time.Duration) {
			fmt.Fprintf(os.Stderr, "\rround %d of %d, after %s of virtual time   ", round, rounds, at.Round(time.Second))
			if round == rounds {
				fmt.Fprint(os.Stderr, "\r\033[K")
			}
		}
	}
	s, err := simulate.Run(ctx, opt)
	if err != nil {
		return nil, simError(ctx, err, again)
	}
	s.Sweep = pairs(setting)
	return s, nil
}

// again is the advice for resuming an interrupted sweep; "": it has left no files.
func (f options) again() string {
	if f.dir == "" || len(f.sweep) == 0 {
		return ""
	}
	return "continue with the same flags and --resume"
}

// simError gives the errors of a simulation their codes.
func simError(ctx context.Context, err error, again string) error {
	if err = cause.Explain(terminal.IfInterrupted(ctx, err, again)); terminal.Explained(err) {
		return err
	}
	return &terminal.Problem{
		Code: "SIM_FAILED", What: "the simulation broke off", Why: err.Error(),
		Fix: "play it again with --events FILE, which says what happened before; a rule that is broken is a bug worth a " +
			"report",
	}
}
