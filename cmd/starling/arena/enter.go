package arena

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	nodearena "github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/protocol/arena"
)

// Taken is an entry for programs.
type Taken struct {
	Contest uint64 `json:"contest"`
	Entry   uint32 `json:"entry"`
	Model   string `json:"model"`
}

func enterCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "enter CONTEST FOLDER --home DIR",
		Short: "Enter a model into a contest by a commitment",
		Long: `Enter the model in a folder: config.json and its safetensors. The network gets a commitment, and locks the
deposit; no other account learns which model it is before starling market arena reveal publishes it. Keep the files as
they are, and the folder arena/ of --home, which has the salt of the commitment. Of two models of which one is a copy,
the earlier entry has the place; where the terms name no base, two models that are tuned from one public model are
copies of each other, and the first that is entered has the place. A folder with code, with weights in other formats, or
with another tokenizer than the contest has, is refused.

With -o json: {"contest","entry","model"}.`,
		Example: `  starling market arena enter 3 out/quickstart --home net/worker`,
		Args:    usage.Exactly("CONTEST", "FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantContest(cmd, args[0])
			if err != nil {
				return err
			}
			if t.Home == "" {
				return usage.Error(cmd, errors.New("--home is needed: the folder of the account that enters"))
			}
			return explain(enter(cmd, c, &t, id, args[1]))
		},
	}
	t.Flags(cmd)
	return cmd
}

func enter(cmd *cobra.Command, c *terminal.Console, t *target.Target, id uint64, folder string) error {
	e, err := nodearena.Prepare(dirs(t.Home, "entries", fmt.Sprint(id)), folder, func(done, total int64) {
		if !c.Quiet {
			fmt.Fprintf(os.Stderr, "read %s of %s\n", terminal.Bytes(uint64(done)), terminal.Bytes(uint64(total)))
		}
	})
	if err != nil {
		return err
	}
	model, salt := e.Model()
	err = t.Act(cmd, "the folder of the account that enters", func(ctx context.Context, cl *client.Client) error {
		s, err := cl.Arena.Contest(ctx, id)
		if err != nil {
			return err
		}
		commitment := arena.Commitment(id, cl.Address(), model, salt)
		for _, had := range s.All { // by a call that was cut off, or by an earlier one
			if had.Commitment == commitment {
				return e.Entered(had.Number)
			}
		}
		if e.Bytes() > s.Terms.MaxBytes {
			return &nodearena.Error{Code: nodearena.BadFolder, What: fmt.Sprintf("the model has %s, and the contest takes %s",
				terminal.Bytes(e.Bytes()), terminal.Bytes(s.Terms.MaxBytes)), Fix: "enter a smaller model"}
		}
		if err := e.Suits(s.Terms); err != nil {
			return err
		}
		n, err := cl.Arena.Enter(ctx, id, commitment)
		if err != nil {
			return err
		}
		return e.Entered(n)
	})
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(Taken{id, e.Entry(), model.String()}, fmt.Sprint(e.Entry())))
	}
	_, err = fmt.Printf("entry %d of contest %d is the model %s\n", e.Entry(), id, model.Short())
	return err
}
