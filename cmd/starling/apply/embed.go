package apply

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/vectors"
)

// embedded is a text with its vector.
type embedded struct {
	Text   string    `json:"text"`
	Vector []float32 `json:"vector"`
}

// Embed is the command starling model embed.
func Embed(c *terminal.Console) *cobra.Command {
	var threads int
	var texts []string
	cmd := &cobra.Command{
		Use:   "embed MODEL",
		Short: "Give texts vectors with a trained model, and compare them", Annotations: terminal.FiguresOnly,
		Long: `Give each text a vector of length 1 with the model in a folder, the output of a job with task: embed, and
print the cosine of every text with every other: texts that belong together have a large one. Texts are given by --text,
or are the lines of standard input; the end of a text that is longer than those of the training does not count. Vectors
are the same bits on every machine.

With -o jsonl: {"text","vector"} for each text. With -o json: {"texts":[{"text","vector"}],"cosines":[[NUMBER]]}, a row
and a column for each text.`,
		Example: `  starling model embed out/embed --text "Where is the blue lamp?" --text "The blue lamp is in the hall."
  starling model embed out/embed -o jsonl < sentences.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Error(cmd, errors.New("give the folder of a model"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := vectors.Open(os.DirFS(args[0]))
			if err != nil {
				return terminal.UnreadableModel("use", args[0], err, "give the output folder of a finished run with task: embed")
			}
			if texts == nil {
				if texts, err = readLines(os.Stdin); err != nil {
					return err
				}
			}
			all, err := m.Encode(cmd.Context(), texts, threads)
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), err, "")
			}
			made := make([]embedded, len(all))
			for i, v := range all {
				made[i] = embedded{texts[i], v}
			}
			return printVectors(c, made)
		},
	}
	cmd.Flags().IntVar(&threads, "threads", kernel.Cores, "number of threads")
	cmd.Flags().StringArrayVar(&texts, "text", nil,
		"text to embed; repeat it for more (default: lines of standard input)")
	return cmd
}

// printVectors prints vectors for programs, and their cosines for people.
func printVectors(c *terminal.Console, made []embedded) error {
	if c.Form == terminal.JSONL { // of many texts, whose cosines are not asked for
		return c.Form.Print(os.Stdout, terminal.Lines(nil, made))
	}
	cosines := make([][]float64, len(made))
	for i, x := range made {
		for _, y := range made {
			cosines[i] = append(cosines[i], vectors.Cosine(x.Vector, y.Vector))
		}
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"texts": made, "cosines": cosines}))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\tTEXT")
	for i := range made {
		fmt.Fprintf(w, "\t%d", i+1)
	}
	fmt.Fprintln(w)
	for i, x := range made {
		fmt.Fprintf(w, "%d\t%s", i+1, shortened(x.Text))
		for _, cosine := range cosines[i] {
			fmt.Fprintf(w, "\t%.3f", cosine)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
