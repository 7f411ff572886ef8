package bench

import (
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/browser"
)

func webCommand(c *terminal.Console) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Measure the dashboard, the API and the start of the program",
		Long: `Measure over a made-up run of 100,000 steps: when the page of the run first paints, and when its curve is
there, in Chromium if it is installed, else the last byte of the files that it needs; how long requests of the status
of a job take at 1,000 a second while 500 event streams are open; and how long the program takes to start.
The server has just begun when a page is opened, and reads the run meanwhile.

With -o json: {"bars":[{"name","value","bar","holds"}],"browser","paint_ms","shown_ms","read_ms","p50_ms",
"p99_ms","requests","streams","start_ms","start_p50","paints"}.`,
		Example: `  starling bench web --quick
  starling bench web -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := browser.Thorough
			if quick {
				o = browser.Quick
			}
			var err error
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			r, err := browser.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	return cmd
}
