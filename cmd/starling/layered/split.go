package layered

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/compute/model/rekey"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/pretrained"
)

// Split is a model in stages for programs.
type Split struct {
	Weights string   `json:"weights"`
	Folders []string `json:"folders"` // of the front, and of each stage
	Left    []int    `json:"left"`    // stages that texts may be continued without, one at a time at least
}

func splitCommand(c *terminal.Console) *cobra.Command {
	var out, dir string
	var stages int
	var epoch uint64
	cmd := &cobra.Command{
		Use:   "split MODEL --stages N --out DIR",
		Short: "Cut a model into stages, which several machines hold",
		Long: `Write a model in a folder as --stages parts with some of its layers each, and a front with its other tensors
and its tokenizer: DIR/front, DIR/stage-1 and so on. Each folder goes to another machine. starling model stage holds a
stage, with as many holders of each as you like, and starling model serve or host answers requests with the front. Texts
have the bits of the model that is not cut, and their receipts name its weights.

With --epoch the weights of all parts are changed by a key, which follows from that in --home, the model and the
number of the epoch. The function of the model stays, but for rounding, and parts of two epochs predict many times worse
together. Each stage has one more matrix, which turns what it gets from the stage before. Receipts then name the weights
of the epoch, which are a model of its own on a network. For models in the form of Llama, Mistral, Qwen 2 and Qwen 3.
Keep --home and MODEL to yourself: docs/security.md says what epochs protect from, and what not.

Of a model that was trained with parallel.skip, texts may be continued without some stages, if all of their layers were
left out in training: starling model serve --skip-missing. They are named, unless a key has changed the weights.

With -o json: {"weights","folders","left"}.`,
		Example: `  starling model split out/quickstart --stages 3 --out parts
  starling model split out/quickstart --stages 3 --epoch 12 --home owner --out parts-12`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if stages < 1 || out == "" {
				return usage.Error(cmd, errors.New("--stages and --out are needed: the number of stages, from 1 on, and "+
					"the folder in which they are made"))
			}
			if (epoch > 0) != (dir != "") {
				return usage.Error(cmd, errors.New("--epoch, from 1 on, and --home, the folder of the key of the owner, are "+
					"given together"))
			}
			m, err := pretrained.Load(args[0])
			if err != nil {
				return terminal.UnreadableModel("split", args[0], err, terminal.AnyModel)
			}
			made, err := write(cmd.Context(), args[0], out, dir, m, part.Manifest{Stages: stages, Epoch: epoch})
			if err != nil {
				return unreadable("split", args[0], err)
			}
			of, err := section.Divide(m.Config, stages)
			if err != nil {
				return unreadable("split", args[0], err)
			}
			s := Split{Weights: made.Weights.String(), Left: append([]int{}, made.Left.Each(of)...)}
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
			for _, stage := range s.Left {
				fmt.Println("optional stage", stage, "with starling model serve --skip-missing")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&stages, "stages", 0, "number of stages, at most that of the layers")
	f.StringVar(&out, "out", "", "folder in which the folders of the parts are made")
	f.Uint64Var(&epoch, "epoch", 0, "number of the epoch whose key changes the weights (default: none does)")
	f.StringVar(&dir, "home", "", "folder of the key of the owner, from which those of epochs follow")
	return cmd
}

// write writes the parts of a model, whose weights the key of an epoch changes first.
func write(ctx context.Context, from, out, dir string, m *pretrained.Model, as part.Manifest) (part.Manifest, error) {
	var err error
	if as.Epoch == 0 {
		if as.Left, err = left.Read(from, m.Config.Layers); err != nil {
			return as, err
		}
		if as.Files, err = listing.Files(ctx, from); err != nil {
			return as, err
		}
		return part.Write(out, from, m.Config, m.Tensors, as)
	}
	owner, err := home.Read(dir)
	if err != nil {
		return as, cause.Home(err)
	}
	root, _, err := check.Weights(m.Config, m.Tensors)
	if err != nil {
		return as, err
	}
	l, err := section.Divide(m.Config, as.Stages)
	if err != nil {
		return as, err
	}
	key := owner.Derive(fmt.Sprintf("epoch/%s/%d", root, as.Epoch))
	c, tensors, err := rekey.Apply(m.Config, m.Tensors, l.Begins(), rand.NewChaCha8(key))
	if err != nil {
		return as, err
	}
	return part.Write(out, from, c, tensors, as)
}
