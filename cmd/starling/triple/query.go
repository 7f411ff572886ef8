package triple

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/triple/linked"
)

// Scored is an image with the scores of its classes for programs.
type Scored struct {
	Image  string             `json:"image"`
	Label  string             `json:"label"`
	Scores map[string]float64 `json:"scores"`
}

func queryCommand(c *terminal.Console) *cobra.Command {
	var dir string
	var all parties
	cmd := &cobra.Command{
		Use:   "query IMAGE... --party ADDRESS ... --home DIR",
		Short: "Ask three parties for the class of an image that none of them sees",
		Long: `Divide images into shares for the three parties of a model, and print the class with the highest score. The
parties run starling model party; --party names them in the order of their folders. They see neither the images nor the
scores, as long as two of them do not work together. The scores say something about the weights: a client with many
answers can train a model like it.

--home is the folder of the key of this client. starling worker identity shows its peer ID, which the parties need.

With -o json: {"bound","images":[{"image","label","scores"}]}.`,
		Example: `  starling model query scan.png --home me --party /ip4/10.0.0.1/tcp/7710/p2p/12D3KooWA... \
      --party /ip4/10.0.0.2/tcp/7710/p2p/12D3KooWB... --party /ip4/10.0.0.3/tcp/7710/p2p/12D3KooWC...`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			addrs, err := all.all(cmd)
			if err != nil {
				return err
			}
			if dir == "" || len(args) == 0 {
				return usage.Error(cmd, errors.New("an image and --home are needed: the folder of the key of this client"))
			}
			key, _, err := home.Open(dir)
			if err != nil {
				return cause.Home(err)
			}
			client, closes, err := linked.Dial(cmd.Context(), key.Peer(), addrs)
			if err != nil {
				return explain(err, "")
			}
			defer closes()
			var made []Scored
			for _, path := range args {
				s, err := query(cmd, client, path)
				if err != nil {
					return err
				}
				made = append(made, s)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"bound": client.Manifest.Bound, "images": made}))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "IMAGE\tCLASS\tSCORE")
			for _, x := range made {
				fmt.Fprintf(w, "%s\t%s\t%.3f\n", x.Image, terminal.Printable(x.Label), x.Scores[x.Label])
			}
			return w.Flush()
		},
	}
	all.flag(cmd.Flags())
	cmd.Flags().StringVar(&dir, "home", "", "folder of the key of the client")
	return cmd
}

// query asks about the image in a file.
func query(cmd *cobra.Command, client *linked.Client, path string) (s Scored, err error) {
	raw, err := usage.ReadOrStdin(path)
	var p picture.Picture
	if err == nil {
		p, err = picture.Decode(raw)
	}
	var scores []float64
	if err == nil {
		scores, err = client.Scores(cmd.Context(), p)
	}
	switch {
	case errors.Is(err, linked.ErrParty):
		return s, explain(err, "")
	case err != nil:
		return s, terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot classify " + path,
			Why: err.Error(), Fix: "give a PNG of the size and the channels of the images that the model was trained on",
		}, terminal.ExitNotFound)
	}
	s = Scored{Image: path, Scores: map[string]float64{}}
	best := 0
	for i, x := range scores {
		s.Scores[client.Manifest.Labels[i]] = x
		if x > scores[best] {
			best = i
		}
	}
	s.Label = client.Manifest.Labels[best]
	return s, nil
}
