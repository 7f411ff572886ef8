package model

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/node/verify"
)

func evalCommand(c *terminal.Console) *cobra.Command {
	var file string
	var window, threads int
	cmd := &cobra.Command{
		Use:   "eval MODEL",
		Short: "Measure how well a model predicts a text", Annotations: terminal.FiguresOnly,
		Long: `Measure the mean loss of a model on the text in a file, in nats a token; its exponential, the perplexity; and
the bits that the model needs for a byte, which compares models whatever their tokens are. The text is cut into
windows of --window tokens, and every token but the first of the text is predicted from those before it in its window.

Without --data, MODEL is the output folder of a run, and the figure is that of its training: the mean loss over
the windows that the job holds out. The data comes from the folder's blobs. Of a job of preferences it is the loss on
held-out pairs, with the share of pairs whose preferred answer gained more, and the mean margin; of one of rewards 1
less the mean reward of the most likely answers to held-out prompts, with the share of them that are right.

With -o json: {"loss","perplexity","bits_per_byte","tokens","bytes","window","measured"}.`,
		Example: `  starling model eval out/quickstart
  starling model eval out/quickstart --data other.txt
  starling model eval out/quickstart --data - --window 64 -o json < other.txt`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if window < 0 || threads < 1 {
				return usage.Error(cmd, errors.New("--window must not be negative and --threads at least 1"))
			}
			e, err := evaluate(c, cmd, args[0], file, window, threads)
			switch {
			case errors.Is(err, rundir.ErrNotARun):
				return terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: err.Error(),
					Fix: "give the output folder of `starling train`, or --data FILE"}, terminal.ExitNotFound)
			case errors.Is(err, textgen.ErrModel):
				return generateError(cmd, args[0], err)
			case err != nil:
				return terminal.IfInterrupted(cmd.Context(), err, "")
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(e))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			if e.Measured != nil {
				fmt.Fprintf(w, "loss\t%.4f%s\n", e.Loss, terminal.LossUnit(e.Measured))
				for _, name := range slices.Sorted(maps.Keys(e.Measured)) {
					fmt.Fprintf(w, "%s\t%.4f\n", name, e.Measured[name])
				}
				return w.Flush()
			}
			fmt.Fprintf(w, "loss\t%.4f nats a token\nperplexity\t%.2f\n", e.Loss, e.Perplexity)
			if e.Bytes > 0 {
				fmt.Fprintf(w, "bits per byte\t%.4f\n", e.BitsPerByte)
			}
			fmt.Fprintf(w, "tokens\t%d in windows of %d\n", e.Tokens, e.Window)
			return w.Flush()
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "data", "", "file of text; - is standard input")
	f.IntVar(&window, "window", 0, "tokens that the model sees at once; 0: its context")
	f.IntVar(&threads, "threads", kernel.Cores, "number of threads")
	return cmd
}

// evaluate measures a model on a file, or on what its run held out.
func evaluate(c *terminal.Console, cmd *cobra.Command, dir, file string, window, threads int) (*pretrained.Evaluation,
	error) {
	if file == "" {
		return verify.EvaluateRun(cmd.Context(), dir, threads)
	}
	m, err := pretrained.Open(dir)
	if err != nil {
		return nil, err
	}
	c.NoteIgnored(dir, m.Ignored())
	text, err := usage.ReadOrStdin(file)
	if err != nil {
		return nil, terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read the text",
			Why: err.Error(), Fix: "give a file of text"}, terminal.ExitNotFound)
	}
	return m.Evaluate(cmd.Context(), string(text), window, threads)
}
