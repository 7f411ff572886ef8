package layered

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/pretrained"
)

// Split is a model in stages for programs.
type Split struct {
	Weights string   `json:"weights"`
	Folders []string `json:"folders"` // of the front, and of each stage
}

func splitCommand(c *terminal.Console) *cobra.Command {
	var out string
	var stages int
	cmd := &cobra.Command{
		Use:   "split MODEL --stages N --out DIR",
		Short: "Cut a model into stages, which several machines hold",
		Long: `Write a model in a folder as --stages parts with some of its layers each, and a front with its other tensors and
its tokenizer: DIR/front, DIR/stage-1 and so on. Each folder goes to another machine. starling model stage holds a stage,
with as many holders of each as you like, and starling model serve or host answers requests with the front. Texts have
the bits of the model that is not cut, and their receipts name its weights.

With -o json: {"weights","folders"}.`,
		Example: `  starling model split out/quickstart --stages 3 --out parts`,
		Args:    usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if stages < 1 || out == "" {
				return usage.Error(cmd, errors.New("--stages and --out are needed: the number of stages, from 1 on, and the "+
					"folder in which they are made"))
			}
			m, err := pretrained.Load(args[0])
			if err != nil {
				return terminal.UnreadableModel("split", args[0], err, terminal.AnyModel)
			}
			files, err := listing.Files(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			made, err := part.Write(out, args[0], m.Config, m.Tensors, part.Manifest{Stages: stages, Files: files})
			if err != nil {
				return unreadable("split", args[0], err)
			}
			s := Split{Weights: made.Weights.String()}
			for stage := range stages + 1 {
				s.Folders = append(s.Folders, filepath.Join(out, part.Name(stage)))
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(s, s.Weights))
			}
			fmt.Println("weights ", s.Weights)
			for _, f := range s.Folders {
				fmt.Println("folder  ", f)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&stages, "stages", 0, "number of stages, at most that of the layers")
	f.StringVar(&out, "out", "", "folder in which the folders of the parts are made")
	return cmd
}
