package job

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/strict"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/quote"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/torch"
)

func validateCommand(c *terminal.Console) *cobra.Command {
	var set []string
	var build bool
	cmd := &cobra.Command{
		Use:   "validate JOB.yaml",
		Short: "Find everything that is wrong with a job file",
		Long: `Check a job file: every key and value, what keys mean for each other, and that the files it names exist.
Everything wrong is listed at once with its line and column, the reason and the fix, and gives exit code 2. With
--build its data is tokenized and its programs are made, too. Settings that have no effect are listed.

With -o json: {"valid","name","file","job","notes":[TEXT]}, the identifier of the job only with --build.`,
		Example: `  starling job validate examples/quickstart.yaml
  starling job validate job.yaml --set training.max_steps=100 --build -o json`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := jobfile.Load(cmd.Context(), c, args[0], set)
			if err != nil {
				return err
			}
			v := validity{Valid: true, Name: j.Name, File: args[0], Notes: []string{}}
			for _, n := range j.Notes {
				v.Notes = append(v.Notes, n.Place+": "+n.Text)
			}
			if build {
				b, err := prepare.New(j)
				if err != nil {
					return cause.Train(err)
				}
				defer b.Close()
				v.Job = b.JobID()
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(v, v.Name))
			}
			for _, n := range v.Notes {
				fmt.Println("note: " + n)
			}
			_, err = fmt.Println(strings.TrimSpace(args[0] + " is valid  " + v.Job))
			return err
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	cmd.Flags().BoolVar(&build, "build", false, "also read the data and make the programs")
	return cmd
}

// validity is what there is to say of a job file without faults.
type validity struct {
	Valid bool     `json:"valid"`
	Name  string   `json:"name"`
	File  string   `json:"file"`
	Job   string   `json:"job,omitempty"`
	Notes []string `json:"notes"`
}

func planCommand(c *terminal.Console) *cobra.Command {
	var set []string
	var network string
	var p source.Place
	cmd := &cobra.Command{
		Use:   "plan JOB.yaml",
		Short: "Say what a job will take and cost, and start nothing",
		Long: `Say what a job will take and cost, as starling train --dry-run does: on this machine, or, with --network, on a
network; or, with --api, at a server, whose folder of data the file's paths are in.

With -o json: what starling train --dry-run prints, or, with --api, {"id","name","steps","rounds","workers","tokens",
"flops","parameters","disk_bytes","round_bytes","cost_uzen","budget_uzen","coin","facts":[{"name","value"}],
"notes":[TEXT],
"step_seconds","seconds","memory_bytes","placement":{"workers","verifiers","memory_bytes","free_bytes","fits"},
"rejections":[{"id","why","text"}]}.`,
		Example: `  starling job plan examples/quickstart.yaml
  starling job plan job.yaml --network http://127.0.0.1:26601
  starling job plan job.yaml --api http://127.0.0.1:7300 -o json`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("api") && network != "" {
				return usage.Error(cmd, errors.New("--api and --network are given: one of them says where to look"))
			}
			if p.API == "" || network != "" {
				j, err := jobfile.Load(cmd.Context(), c, args[0], set)
				if err != nil {
					return err
				}
				flags := jobfile.SetFlags(set)
				if network != "" {
					flags += " --network " + network
				}
				return quote.Plan(cmd.Context(), c, j, args[0], network, flags, torch.Options{})
			}
			a, spec, err := submission(cmd, p, args[0], set)
			if err != nil {
				return err
			}
			defer a.Close()
			plan, err := a.Plan(cmd.Context(), spec)
			if err != nil {
				return source.Explain(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(plan, plan.ID))
			}
			return printServerPlan(plan, args[0], p.API)
		},
	}
	p.Server(cmd)
	cmd.Flags().StringVar(&network, "network", "", "HTTP interface of a validator: plan for its network")
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	return cmd
}

// submission is a job file as a server takes it, with a client of the server.
func submission(cmd *cobra.Command, p source.Place, path string, set []string) (*source.Client, api.Spec, error) {
	spec := api.Spec{Overrides: set}
	f, err := os.Open(path)
	if err == nil {
		var text []byte
		text, err = io.ReadAll(io.LimitReader(f, strict.MaxFileBytes+1))
		err = errors.Join(err, f.Close())
		spec.Config = string(text)
	}
	if err != nil {
		return nil, spec, terminal.WithExit(&terminal.Problem{Code: problem.FileNotFound,
			What: "cannot read the job file " + path, Why: err.Error(),
			Fix: "check the path; examples/quickstart.yaml is a job file to start from"}, terminal.ExitUsage)
	}
	a, err := p.Open(cmd, "")
	return a, spec, err
}

func printServerPlan(p api.Plan, path, server string) error {
	w := terminal.NewColumns(os.Stdout, terminal.Table, "JOB", "PARAMETERS", "STEPS", "ROUNDS", "WORKERS", "TOKENS",
		"COST AT MOST", "BUDGET", "DISK")
	w.Row(p.ID, terminal.Number(float64(p.Parameters)), p.Steps, p.Rounds, p.Workers, terminal.Number(float64(p.Tokens)),
		amountIn(p.Coin, p.CostUzen), amountIn(p.Coin, p.BudgetUzen), terminal.Bytes(uint64(p.DiskBytes)))
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nabout %s on the server; memory %s for each worker%s\n", terminal.Seconds(p.Seconds),
		terminal.Bytes(p.MemoryBytes),
		quote.Room(&p.Placement))
	for _, r := range p.Rejections {
		fmt.Printf("not taken: %s: %s\n", r.ID, r.Text)
	}
	for _, n := range p.Notes {
		fmt.Println("note: " + n)
	}
	_, err := fmt.Printf("\nnext: starling job submit %s --api %s --plan %s\n", path, server, p.ID)
	return err
}

func submitCommand(c *terminal.Console) *cobra.Command {
	var s api.Submission
	var set []string
	var key string
	var watch bool
	var p source.Place
	cmd := &cobra.Command{
		Use:   "submit JOB.yaml --api URL",
		Short: "Have a server train a job",
		Long: `Have the server of starling web train a job: its paths are in the server's folder of data. With --key, the same
key gives the same job, and lets one that stopped continue. With --plan it fails if the job is another than the one that
was planned. On this machine, and on a network, starling train trains a job.

With -o json: the job as starling job get prints it.`,
		Example: `  starling job submit job.yaml --api http://127.0.0.1:7300
  starling job submit job.yaml --api http://127.0.0.1:7300 --key nightly-2030-01-02 --watch
  starling job submit job.yaml --plan job-7f3a -o name`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.API == "" {
				return usage.Error(cmd, errors.New("--api is needed: the address of a starling web"))
			}
			a, spec, err := submission(cmd, p, args[0], set)
			if err != nil {
				return err
			}
			defer a.Close()
			s.Spec = spec
			j, err := a.Submit(cmd.Context(), s, key)
			if err == nil && watch {
				j, err = showUntilOver(c, cmd, a, j.ID)
			}
			switch {
			case err != nil && cmd.Context().Err() != nil:
				return terminal.Interrupted("starling job watch " + j.ID + " --api " + p.API)
			case err != nil:
				return source.Explain(err)
			case c.Form.Machine() && watch:
				return nil // it was printed during the run
			case c.Form.Machine():
				return c.Form.Print(os.Stdout, terminal.One(j, j.ID))
			}
			return printJob(j)
		},
	}
	p.Server(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	f.StringVar(&s.Name, "name", "", "name of its folder at the server (default: that of the job)")
	f.StringVar(&s.Plan, "plan", "", "identifier of the plan that was looked at")
	f.StringVar(&key, "key", "", "Idempotency-Key: the same gives the same job")
	f.BoolVar(&watch, "watch", false, "follow it until it is over")
	return cmd
}

func exportCommand(c *terminal.Console) *cobra.Command {
	var p source.Place
	var to string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "export JOB --to DIR",
		Short: "Copy the files of a job: its model, its records, its blobs",
		Long: `Copy the files of a job into a folder: its model, its records (job.yaml, metrics, lineage, receipts, disputes,
log, report.html) and, with --files blob, what checkpoints and updates are made of. starling job verify checks a copy
that has records and blobs. A file that is there with the same size is left; nothing else is overwritten.

` + source.JobNames + `

With -o json: {"to","files":[{"name","kind","bytes","modified"}]}.`,
		Example: `  starling job export quickstart --to copy
  starling job export quickstart --to copy --files model --api http://127.0.0.1:7300
  starling job export quickstart --to copy --files model,record,blob`,
		Args: usage.Exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage.Error(cmd, errors.New("--to is needed: a folder"))
			}
			for _, k := range kinds {
				if !slices.Contains([]string{"model", "record", "blob"}, k) {
					return usage.Error(cmd, fmt.Errorf("--files %s: there are model, record and blob", k))
				}
			}
			a, j, err := p.Find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.Close()
			files, err := a.Fetch(cmd.Context(), j.ID, to, kinds)
			if err != nil {
				return err
			}
			return source.PrintFetched(c, to, files)
		},
	}
	p.Flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "folder to write to; it is made if it is missing")
	cmd.Flags().StringSliceVar(&kinds, "files", []string{"model", "record"}, "which files: model, record, blob")
	return cmd
}
