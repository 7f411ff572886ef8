package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/simulate/cohort"
)

var federatedKind = regexp.MustCompile(`(?m)^kind:\s*["']?FederatedJob\b`)

// isFederated reports whether a job file is of owners of data.
func isFederated(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && federatedKind.Match(text)
}

// unused are the flags that a job of owners has no use for: it has no chain, and is played once.
var unused = []string{"sweep", "resume", "modelled", "advise", "price", "verifiers", "validators", "block-time"}

// runOwners plays a job of owners of data.
func runOwners(ctx context.Context, c *terminal.Console, cmd *cobra.Command, path string, f options) (err error) {
	for _, name := range unused {
		if cmd.Flags().Changed(name) {
			return usage.Error(cmd, fmt.Errorf("--%s is of jobs on a network, and a FederatedJob has none", name))
		}
	}
	opt, err := f.ofOwners()
	if err != nil {
		return usage.Error(cmd, err)
	}
	if f.dir != "" {
		if _, err := os.Stat(filepath.Join(f.dir, "run")); err == nil {
			return terminal.WithExit(&terminal.Problem{Code: "OUTPUT_CONFLICT", What: f.dir + " holds another run",
				Why: "owners answer a round of a job once", Fix: "give another folder with --dir"}, terminal.ExitConflict)
		}
		opt.Dir = f.dir
	} else {
		if opt.Dir, err = os.MkdirTemp("", "starling-sim-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(opt.Dir)) }()
	}
	if opt.Job, err = job.ReadFederated(path, f.set...); err == nil {
		err = errors.Join(opt.Job.Confine(""), opt.Job.CheckFiles())
	}
	if err != nil {
		return terminal.WithExit(err, terminal.ExitUsage)
	}
	if n := opt.Job.Federated; len(opt.Data) < n.MinCohort || len(opt.Data) > n.Owners {
		return usage.Error(cmd, fmt.Errorf("--data names %d folders, and the job has %d to %d owners (federated.min_cohort "+
			"and owners)", len(opt.Data), n.MinCohort, n.Owners))
	}
	if f.events != "" {
		file, err := os.Create(f.events)
		if err != nil {
			return err
		}
		defer file.Close()
		opt.Events = func(line string) { fmt.Fprintln(file, line) }
	}
	s, err := cohort.Run(ctx, opt)
	switch {
	case errors.Is(err, cohort.ErrParty):
		return usage.Error(cmd, err)
	case errors.Is(err, federated.ErrPublic):
		return terminal.WithExit(&terminal.Problem{Code: "PUBLIC_UPDATES", What: "the job has no masks", Why: err.Error(),
			Fix: "write federated: {updates: masked}"}, terminal.ExitUsage)
	case err != nil:
		return simError(ctx, err, "")
	case f.dir == "":
		s.Dir = ""
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(s, s.Model))
	}
	return printOwners(s)
}

// ofOwners reads the flags for a job of owners of data.
func (f options) ofOwners() (o cohort.Options, err error) {
	o = cohort.Options{Seed: f.seed, Gflops: f.gflops, Threads: f.threads, Phase: f.phase, Acts: map[string]string{}}
	acts := f.acts
	f.acts = nil
	shared, err := f.read()
	if err != nil {
		return o, err
	}
	for _, fault := range shared.Faults {
		o.Faults = append(o.Faults, cohort.Fault(fault))
	}
	if o.Links = shared.Links; f.phase <= 0 || len(o.Links) == 0 || len(o.Gflops) == 0 {
		return o, errors.New("there is a link and a speed, and --phase-timeout is above 0")
	}
	for _, text := range acts {
		who, name, _ := strings.Cut(text, "=")
		if !slices.Contains(cohort.Acts(), name) {
			return o, fmt.Errorf("--act %s: acts of owners are %s", text, strings.Join(cohort.Acts(), ", "))
		}
		o.Acts[who] = name
	}
	for _, pattern := range f.data {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return o, fmt.Errorf("--data %s: there is no such folder", pattern)
		}
		o.Data = append(o.Data, found...)
	}
	return o, nil
}

// printOwners prints what came of a job of owners for people.
func printOwners(s *cohort.Simulation) error {
	privacy := "none: there was no noise"
	if s.Epsilon != nil {
		privacy = fmt.Sprintf("epsilon %.3f at delta %g for all data of one owner", *s.Epsilon, s.Delta)
	}
	if x := s.Example; x != nil {
		privacy += fmt.Sprintf("; epsilon %.3f at delta %g for one example", x.Epsilon, x.Delta)
	}
	loss := "not measured"
	if s.FirstLoss != nil && s.FinalLoss != nil {
		loss = terminal.Loss(*s.FirstLoss) + " -> " + terminal.Loss(*s.FinalLoss)
	}
	fmt.Printf("%d rounds with a sum of at least %d owners, %d without, in %s\nloss     %s\nprivacy  %s\nmodel    %s\n\n",
		s.Rounds, s.MinCohort, s.Void, tenths(s.Seconds), loss, privacy, s.Model)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTY\tMB SENT\tMB RECEIVED\tWORKED\tOUT OF THE JOB")
	for _, p := range s.Parties {
		name := p.Name
		if p.Act != "" {
			name += " (" + p.Act + ")"
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t%s\n", name, float64(p.BytesUp)/1e6, float64(p.BytesDown)/1e6,
			tenths(p.WorkedSeconds), p.Failed)
	}
	return w.Flush()
}
