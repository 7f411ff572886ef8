package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/role/adversary/catalog"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
)

// options are what the flags say.
type options struct {
	set, sweep    []string
	seed          uint64
	links         []string
	gflops        []float64
	verifiers     int
	validators    int
	block         time.Duration
	acts          []string
	crashes, cuts []string
	data          []string
	phase         time.Duration
	dir, events   string
	threads       int
	modelled      bool
	advise        bool
	resume        bool
	price         float64
}

// jobs are those of all variants of a sweep. An error in any of them is found before the first is played.
func (f options) jobs(ctx context.Context, c *terminal.Console, path string,
	settings [][][2]string) (jobs []*job.Job, err error) {
	var all problem.ErrorList
	for _, setting := range settings {
		j, err := jobfile.Load(ctx, c, path, slices.Concat(f.set, pairs(setting)))
		var wrong *problem.ErrorList
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

// folders are the folders of the results of n simulations; none if the results are not written.
func (f options) folders(n int) []string {
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

// whole is the folder of the comparison of the simulations in dirs, if there is one.
func (f options) whole(dirs []string) []string {
	if len(dirs) < 2 {
		return nil
	}
	return []string{f.dir}
}

// vacant reports the first folder that results cannot be written to. If the sweep is resumed, finished simulations
// are allowed.
func vacant(dirs []string, resume bool) error {
	for _, dir := range dirs {
		err := rundir.Probe(dir)
		if _, none := os.Stat(filepath.Join(dir, "simulation.json")); err == nil && none == nil && !resume {
			err = rundir.ErrFinished
		}
		if errors.Is(err, rundir.ErrFinished) || errors.Is(err, rundir.ErrUnfinished) {
			return terminal.WithExit(&terminal.Problem{
				Code: "OUTPUT_CONFLICT", What: fmt.Sprintf("%v: %s", err, dir), Why: "starling never overwrites a model",
				Fix: "give another folder with --dir, or continue a sweep that was cut off with --resume",
			}, terminal.ExitConflict)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// before returns the simulations that the folders of a sweep hold from before, by their place in it.
func (f options) before(dirs []string, jobs []*job.Job, opt simulate.Options) (map[int]*simulate.Simulation, error) {
	if !f.resume {
		return nil, nil
	}
	done := map[int]*simulate.Simulation{}
	for i, dir := range dirs {
		opt.Job = jobs[i]
		s, err := simulate.Read(dir, opt)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, simulate.ErrOther):
			return nil, terminal.WithExit(&terminal.Problem{
				Code: "OUTPUT_CONFLICT", What: err.Error(), Why: "--resume continues the same sweep",
				Fix: "give the flags and the job file that the sweep was begun with (simulation.json holds the conditions), " +
					"or another folder with --dir",
			}, terminal.ExitConflict)
		case err != nil:
			return nil, err
		default:
			done[i] = s
		}
	}
	return done, nil
}

// read reads the flags.
func (f options) read() (o simulate.Options, err error) {
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
		l, err := link.Parse(text)
		if err != nil {
			return o, fmt.Errorf("--link: %w", err)
		}
		o.Links = append(o.Links, l)
	}
	for _, text := range f.acts {
		who, name, _ := strings.Cut(text, "=")
		if _, ok := catalog.Named(name); !ok {
			return o, fmt.Errorf("--act %s: acts are %s", text, strings.Join(catalog.Names(), ", "))
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

// sweepExperts adds a sweep over the experts of a file, unless the flags have one.
func (f *options) sweepExperts(path string) {
	all, err := job.ReadAll(path, f.set...)
	if err != nil || len(all) < 2 || slices.ContainsFunc(f.sweep, func(s string) bool {
		return strings.HasPrefix(s, "expert=")
	}) {
		return
	}
	var names []string
	for _, j := range all {
		names = append(names, j.Expert)
	}
	f.sweep = append(f.sweep, "expert="+strings.Join(names, ","))
}
