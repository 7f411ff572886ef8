// Package privacy is starling bench privacy: it shows the figures of node/benchmark/privacy, and measures nothing.
package privacy

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/privacy"
)

// Command is starling bench privacy.
func Command(c *terminal.Console) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "privacy",
		Short: "Measure secure sums, noise and the accountant of privacy",
		Long: `Add the vectors of 5, 20 and 100 clients, which are all in this process, under masks: with as many of them
dropping out in each phase as the threshold allows, and the largest with a million entries. Test the noise against its
distribution, and compare the accountant with published figures. starling job federated trains with these parts; a run
of starling train is not private.

With -o json: {"sums":[{"clients","entries","dropouts","phase","exact","error","processor"}],"vectors":[{"rate","noise",
"steps","delta","classic","epsilon","deviation"}],"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench privacy
  starling bench privacy --quick -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := privacy.Options{Entries: 1 << 20, Samples: 1_000_000, Progress: c.Say}
			if quick {
				o.Entries, o.Samples = 10_000, 100_000
			}
			r, err := privacy.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			return show(r)
		},
	}
	figure.QuickFlag(cmd, &quick)
	return cmd
}

func show(r *privacy.Report) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLIENTS\tENTRIES\tDROPOUTS\tDROP OUT\tEXACT\tERROR\tPROCESSOR")
	for _, s := range r.Sums {
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%t\t%.1e\t%.2f s\n", s.Clients, s.Entries, s.Dropouts, s.Phase, s.Exact, s.Error,
			s.Processor)
	}
	fmt.Fprintln(w, "\nRATE\tNOISE\tSTEPS\tDELTA\tCLASSIC\tEPSILON")
	for _, v := range r.Vectors {
		fmt.Fprintf(w, "%.4g\t%g\t%.0f\t%g\t%.4f\t%.4f\n", v.Rate, v.Noise, v.Steps, v.Delta, v.Classic, v.Epsilon)
	}
	fmt.Fprintln(w)
	figure.PrintBars(w, r.Bars)
	return w.Flush()
}
