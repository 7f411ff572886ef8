package bench

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/memory"
)

func memoryCommand(c *terminal.Console) *cobra.Command {
	var o memory.Options
	var unit, load string
	var set []string
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure the memory of runs, and compare it with their plan",
		Long: `Train models on embedded networks of two workers and a verifier, load the last checkpoint of each run,
verify the run, compute a unit alone, and play simulations of some rounds and of twice as many, each in a process
of its own. The most memory that each had is printed with its plan and its bound; the bounds of units, loaded
checkpoints and verifications are for the memory above that which a process has before its work. --quick measures a
model of 9 M parameters; without it one of 88 M too; --full one of 350 M too, whose optimizer has a state in int8 of
one round where it does not fit otherwise, and takes ten times the rounds in the second simulation. Where
/usr/bin/python3 has PyTorch, it takes the steps of the unit, too; "skipped" names it where it is missing.

With -o json: {"runs":[{"name","plan_bytes","peak_bytes","state_bytes","start_bytes","disk_bytes","seconds"}],
"bars":[{"name","value","bar","holds"}],"skipped":[NAME]}.`,
		Example: `  starling bench memory --quick
  starling bench memory -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case unit != "":
				return measureUnit(cmd, c, unit, set)
			case load != "":
				return measureLoad(cmd, c, load)
			}
			o.Progress = c.Say
			r, err := memory.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RUN\tPLAN\tPEAK\tSECONDS")
			for _, x := range r.Runs {
				plan := map[bool]string{true: "-", false: terminal.Bytes(x.Plan)}[x.Plan == 0]
				fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\n", x.Name, plan, terminal.Bytes(x.Peak), x.Seconds)
			}
			fmt.Fprintln(w)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	f := cmd.Flags()
	figure.QuickFlag(cmd, &o.Quick)
	f.BoolVar(&o.Full, "full", false, "measure a model of 350 M parameters too, and a long simulation")
	f.StringVar(&unit, "unit", "", "compute the first unit of this job file in this process, and nothing else")
	f.StringArrayVar(&set, "set", nil, "with --unit: change a key of the job file: KEY=VALUE (repeatable)")
	f.StringVar(&load, "load", "", "load the last checkpoint of this output folder in this process, and nothing else")
	cmd.MarkFlagsMutuallyExclusive("quick", "full", "unit", "load")
	return cmd
}

// measureUnit is what the bench runs in a process of its own.
func measureUnit(cmd *cobra.Command, c *terminal.Console, path string, set []string) error {
	j, err := jobfile.Load(cmd.Context(), c, path, set)
	if err != nil {
		return err
	}
	r, err := memory.Unit(cmd.Context(), j)
	if err != nil {
		return cause.Measurement(cmd, err)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(r))
	}
	_, err = fmt.Printf("needs %s, took %s at most\n", terminal.Bytes(r.Needs), terminal.Bytes(r.Peak))
	return err
}

// measureLoad is what the bench runs in a process of its own.
func measureLoad(cmd *cobra.Command, c *terminal.Console, dir string) error {
	r, err := memory.Load(cmd.Context(), dir)
	if err != nil {
		return cause.Measurement(cmd, err)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(r))
	}
	_, err = fmt.Printf("%s loaded in %.2f s, took %s at most\n", terminal.Bytes(r.State), r.Seconds,
		terminal.Bytes(r.Peak))
	return err
}
