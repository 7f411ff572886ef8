package bench

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/machine"
)

func lossesCommand(c *terminal.Console) *cobra.Command {
	var o machine.LossesOptions
	var quick bool
	cmd := &cobra.Command{
		Use:   "losses",
		Short: "Print the losses of training steps on given batches",
		Long: `Train a GPT-2 or Llama from a folder in Hugging Face form (config.json, model.safetensors) on given
batches with AdamW (betas 0.9 and 0.95, eps 1e-8, weight decay on every tensor, constant learning rate), and print
the loss of every step. The file of batches holds little-endian int32 [steps, batch, context+1].

With -o json: {"losses":[NUMBER]}.`,
		Example: `  starling bench losses --model gpt2/ --batches batches.bin --steps 100
  starling bench losses --model gpt2/ --batches batches.bin --steps 20 --lr 1e-3 --wd 0 --clip 1
  starling bench losses --model gpt2/ --batches batches.bin --steps 5 --batch 4 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Model == "" || o.Batches == "" {
				return usage.Error(cmd, errors.New("--model and --batches are needed"))
			}
			figure.Few(cmd, "steps", &o.Steps, quick, 3)
			r, err := machine.Losses(cmd.Context(), o)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "STEP\tLOSS")
			for i, loss := range r.Losses {
				fmt.Fprintf(w, "%d\t%.6f\n", i+1, loss)
			}
			return w.Flush()
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Model, "model", "", "folder of the model")
	f.StringVar(&o.Batches, "batches", "", "file of batches")
	figure.QuickFlag(cmd, &quick)
	f.IntVar(&o.Steps, "steps", 100, "number of steps")
	f.IntVar(&o.Batch, "batch", 8, "sequences of a step")
	f.Float64Var(&o.Rate, "lr", 3e-4, "learning rate")
	f.Float64Var(&o.Decay, "wd", 0.1, "weight decay")
	f.Float64Var(&o.Clip, "clip", 0, "bound of the gradient norm; 0: none")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}
