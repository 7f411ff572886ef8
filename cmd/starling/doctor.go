package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/doctor"
)

func (c *cli) doctor() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this machine",
		Long: `Examine whether Starling can work on this machine and how well: version, processor and kernels, memory,
disk, clock, loopback ports, and whether the kernels compute the bits that everybody else's do.
A finding is ok, warn or fail, and says what to do. A fail gives exit code 12.

With -o json: {"level","findings":[{"check","level","text","fix"}]}.`,
		Example: `  starling doctor
  starling doctor --dir /data/starling
  starling doctor -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := doctor.Examine(cmd.Context(), doctor.Options{Version: binaryVersion(), Dir: dir})
			if err != nil {
				return interrupted(cmd.Context(), err, cmd.CommandPath())
			}
			if err := c.printReport(r); err != nil {
				return err
			}
			if r.Level == doctor.Fail {
				return terminal.WithExit(&terminal.Problem{Code: "DOCTOR_FAILED", What: "this machine is not ready", Fix: "see the findings above"}, terminal.ExitFindings)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder where data is to be kept")
	return cmd
}

func (c *cli) printReport(r *doctor.Report) error {
	if c.output == outputJSON {
		return terminal.PrintJSON(os.Stdout, r)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tLEVEL\tFINDING")
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Check, f.Level, f.Text)
		if f.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", f.Fix)
		}
	}
	return w.Flush()
}
