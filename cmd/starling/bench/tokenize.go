package bench

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/tokenize"
)

func tokenizeCommand(c *terminal.Console) *cobra.Command {
	o := tokenize.Options{MB: 200}
	var quick bool
	cmd := &cobra.Command{
		Use:   "tokenize",
		Short: "Measure the speed and the memory of tokenizing",
		Long: `Make a text, train a tokenizer of 8,192 tokens on its beginning, and tokenize the text by starling data
tokenize in a process of its own: as one document, and as lines of jsonl, plain and packed by zstd. The
speed is in MB of text a second, the start of the process included.

With -o json: {"runs":[{"name","text_bytes","tokens","seconds","cpu_seconds","peak_bytes"}],
"bars":[{"name","value","bar","holds"}]}.`,
		Example: `  starling bench tokenize --quick
  starling bench tokenize --mb 1000 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "mb", &o.MB, quick, 30)
			o.Progress = c.Say
			r, err := tokenize.Measure(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return figure.Judge(r.Bars, c.Form.Print(os.Stdout, terminal.Figures(r)))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "FILE\tTEXT\tTOKENS\tSECONDS\tCPU SECONDS\tPEAK")
			for _, x := range r.Runs {
				fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.1f\t%s\n", x.Name, terminal.Bytes(uint64(x.Bytes)), x.Tokens, x.Seconds,
					x.CPU, terminal.Bytes(x.Peak))
			}
			fmt.Fprintln(w)
			figure.PrintBars(w, r.Bars)
			return figure.Judge(r.Bars, w.Flush())
		},
	}
	figure.QuickFlag(cmd, &quick)
	cmd.Flags().IntVar(&o.MB, "mb", o.MB, "MB of text")
	cmd.Flags().StringVar(&o.Keep, "keep", "", "folder for the text and the tokenizer, which remain there")
	return cmd
}
