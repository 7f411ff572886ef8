package model

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/classes"
)

// classified is what a model says of an image.
type classified struct {
	Image         string             `json:"image"`
	Label         string             `json:"label"` // the most likely class
	Probability   float64            `json:"probability"`
	Probabilities map[string]float64 `json:"probabilities"`
}

func classifyCommand(c *terminal.Console) *cobra.Command {
	var threads int
	cmd := &cobra.Command{
		Use:   "classify MODEL IMAGE...",
		Short: "Name the classes of images with a trained model", Annotations: terminal.FiguresOnly,
		Long: `Name the most likely class of each image, and its probability, with the model in a folder: the output of a job
with task: classify. Images are PNG files of the size that the model was trained on; - is standard input. The scores
are the same bits on every machine.

With -o json: {"images":[{"image","label","probability","probabilities":{LABEL:NUMBER}}]}.`,
		Example: `  starling model classify out/image drawing.png
  starling model classify out/image *.png -o json
  starling model classify out/image - < drawing.png`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage.Error(cmd, errors.New("give the folder of a model and at least one image"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, images, err := openImages(args[0], args[1:])
			if err != nil {
				return err
			}
			all, err := m.Classify(cmd.Context(), images, threads)
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), err, "")
			}
			made := make([]classified, len(all))
			for i, probabilities := range all {
				made[i] = likeliest(args[1+i], m.Labels(), probabilities)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"images": made}))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "IMAGE\tCLASS\tPROBABILITY")
			for _, x := range made {
				fmt.Fprintf(w, "%s\t%s\t%.3f\n", x.Image, x.Label, x.Probability)
			}
			return w.Flush()
		},
	}
	cmd.Flags().IntVar(&threads, "threads", kernel.Cores, "number of threads")
	return cmd
}

// openImages reads a model, and images that fit it.
func openImages(dir string, paths []string) (*classes.Images, []picture.Picture, error) {
	m, err := classes.OpenImages(os.DirFS(dir))
	if err != nil {
		return nil, nil, terminal.WithExit(&terminal.Problem{
			Code: "MODEL_UNREADABLE", What: "cannot use the model in " + dir, Why: err.Error(),
			Fix: "give the output folder of a finished run with task: classify; starling model eval measures other tasks",
		}, terminal.ExitNotFound)
	}
	var images []picture.Picture
	for _, path := range paths {
		raw, err := usage.ReadOrStdin(path)
		var p picture.Picture
		if err == nil {
			p, err = picture.Decode(raw)
		}
		if err == nil {
			err = m.Fits(p)
		}
		if err != nil {
			return nil, nil, terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot classify " + path,
				Why: err.Error(), Fix: "give a PNG of the size and the channels of the images that the model was trained on",
			}, terminal.ExitNotFound)
		}
		images = append(images, p)
	}
	return m, images, nil
}

func likeliest(image string, labels []string, probabilities []float64) classified {
	x := classified{Image: image, Probabilities: map[string]float64{}}
	for i, p := range probabilities {
		x.Probabilities[labels[i]] = p
		if p > x.Probability {
			x.Label, x.Probability = labels[i], p
		}
	}
	return x
}
