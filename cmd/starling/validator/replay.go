package validator

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/validator"
)

func replayCommand(c *terminal.Console) *cobra.Command {
	var until int64
	cmd := &cobra.Command{
		Use:   "replay --home DIR",
		Short: "Execute the blocks of a stopped validator once more, and compare",
		Long: `Execute the blocks of the stopped validator of a folder once more, from the genesis on, in a place of its own,
and compare the state after each with the one that the validators agreed on. Nothing in the folder changes. Blocks are
all that a chain is made of, so a difference is a damaged disk, a bug, or another version of the program; the first one
ends the replay and gives exit code 10.

With -o json: {"chain_id","from","to","transactions"} and, after a difference,
"different":{"height","agreed","replayed"}.`,
		Example: `  starling validator replay --home net/validator-0
  starling validator replay --home net/validator-0 --until 1000 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if until < 0 {
				return usage.Error(cmd, errors.New("--until is a height, such as 1000"))
			}
			said := time.Now()
			r, err := validator.ReplayChain(cmd.Context(), args[0], until, func(height, last int64) {
				if now := time.Now(); now.Sub(said) > 5*time.Second {
					said = now
					c.Say(fmt.Sprintf("block %d of %d", height, last))
				}
			})
			if errors.Is(err, chain.ErrBegins) {
				return terminal.WithExit(&terminal.Problem{
					Code: "BLOCKS_MISSING", What: err.Error(), Why: "the validator began with a snapshot of the others",
					Fix: "play back a validator that was there from the first block on",
				}, terminal.ExitNotFound)
			}
			if err != nil {
				return cause.Network(err)
			}
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.One(r, args[0]))
			} else if r.Different == nil {
				fmt.Printf("%s: blocks %d to %d with %d transactions lead to the states that were agreed on\n", r.ChainID, r.From,
					r.To, r.Txs)
			}
			if d := r.Different; d != nil {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{
					Code: "REPLAY_DIFFERS", What: fmt.Sprintf("block %d leads to the state %.12s, and the validators agreed on %.12s",
						d.Height, d.Replayed, d.Agreed),
					Fix: "compare the version of this program and the genesis with those of the other validators; with the same it " +
						"is a damaged disk, or a bug worth a report",
				}, terminal.ExitVerification))
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&until, "until", 0, "height of the last block; 0: the last that there is")
	return cmd
}
