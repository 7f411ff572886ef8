// Package doctor is starling doctor: it shows what node/doctor finds on this machine.
package doctor

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/node/doctor"
)

// Command is starling doctor.
func Command(c *terminal.Console) *cobra.Command {
	o := doctor.Options{Version: version.Binary()}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this machine",
		Long: `Examine whether Starling can work on this machine and how well: version, processor and kernels, devices for
exact work, memory, disk, clock, loopback ports, and whether the kernels compute the bits that everybody else's do. With
--network, whether the validator answers, is of the right chain and up to date, and how far this clock is from its
blocks; with --home, the key, the devices that passed the comparison there, who may read the folder, and whether a
process runs there; with --listen, whether the addresses can be bound and dialled, and whether others can reach them:
with --network, some parties of the network dial them. A finding is ok, warn or fail, and says what to do. A fail gives
exit code 12.

With -o json: {"level","findings":[{"check","level","text","fix"}]}.`,
		Example: `  starling doctor
  starling doctor --dir /data/starling
  starling doctor --network http://10.0.0.7:26601 --home worker-0 --listen /ip4/0.0.0.0/tcp/4001
  starling doctor -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := doctor.Examine(cmd.Context(), o)
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), err, cmd.CommandPath())
			}
			if err := printReport(c, r); err != nil {
				return err
			}
			if r.Level == doctor.Fail {
				return terminal.WithExit(&terminal.Problem{Code: "DOCTOR_FAILED", What: "this machine is not ready",
					Fix: "see the findings above"}, terminal.ExitFindings)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", ".", "folder where data is to be kept")
	f.StringVar(&o.Network, "network", "", "HTTP interface of a validator to examine")
	f.StringVar(&o.ChainID, "chain-id", "", "with --network: what the chain must be called")
	f.StringVar(&o.Home, "home", "", "folder of a party to examine")
	f.StringSliceVar(&o.Listen, "listen", nil, "multiaddrs that a worker is to listen on")
	return cmd
}

func printReport(c *terminal.Console, r *doctor.Report) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(r, r.Findings, func(f doctor.Finding) string { return f.Check }))
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
