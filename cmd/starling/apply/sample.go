package apply

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/drawn"
)

// most is how many images a command draws, at most.
const most = 4096

// Sample is the command starling model sample.
func Sample(c *terminal.Console) *cobra.Command {
	var threads, count, columns int
	var seed uint64
	var out string
	cmd := &cobra.Command{
		Use:   "sample MODEL",
		Short: "Draw images with a trained model", Annotations: terminal.FiguresOnly,
		Long: `Draw images out of noise with the model in a folder, the output of a job with task: diffusion, and write
them as one PNG, side by side with a line between them. The same seed draws the same images on every machine, and the
first ones are the same whatever their number is.

With -o json: {"file","images","seed","rows","columns","channels"}, the sizes those of one image.`,
		Example: `  starling model sample out/diffusion --out drawn.png
  starling model sample out/diffusion --count 64 --seed 7 --out drawn.png`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usage.Error(cmd, errors.New("give the folder of a model"))
			case out == "":
				return usage.Error(cmd, errors.New("give the file to write, --out FILE.png"))
			case count < 1 || count > most || columns < 1 || columns > count:
				return usage.Error(cmd, fmt.Errorf("--count is 1 to %d, and --columns at most as large", most))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := drawn.Open(os.DirFS(args[0]))
			if err != nil {
				return terminal.UnreadableModel("use", args[0], err,
					"give the output folder of a finished run with task: diffusion")
			}
			all, err := m.Sample(cmd.Context(), count, seed, threads)
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), err, "")
			}
			raw, err := drawn.PNG(all, columns)
			if err == nil {
				err = os.WriteFile(out, raw, 0o644)
			}
			if err != nil {
				return err
			}
			size := all[0].Size
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"file": out, "images": count, "seed": seed,
					"rows": size.Rows, "columns": size.Columns, "channels": size.Channels}))
			}
			fmt.Printf("%d images of %v values in %s\n", count, size, out)
			return nil
		},
	}
	cmd.Flags().IntVar(&threads, "threads", kernel.Cores, "number of threads")
	cmd.Flags().IntVar(&count, "count", 16, "number of images")
	cmd.Flags().IntVar(&columns, "columns", 8, "images side by side")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the noise that images are drawn out of")
	cmd.Flags().StringVar(&out, "out", "", "PNG to write")
	return cmd
}
