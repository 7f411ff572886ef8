package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/bench/figure"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/benchmark/chain"
)

func operationsCommand(c *terminal.Console) *cobra.Command {
	var seed int64
	blocks, quick := 0, false
	cmd := &cobra.Command{
		Use:   "operations",
		Short: "Play random operations on the chain",
		Long: `Play the simulation of the Cosmos SDK on the application, with its operations and those of Starling: accounts
that send, stake, vote, register, offer, order, train, audit and own, and validators that are away or sign twice. After
every block every module must account for its coins. The same seed ends in the same application hash on every machine.

With -o json: {"seed","blocks","executed","refused","application_hash","messages":[{"type","executed","refused"}]}.`,
		Example: `  starling bench operations --seed 7
  starling bench operations --seed 7 --blocks 500 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure.Few(cmd, "blocks", &blocks, quick, 20)
			r, err := chain.Operations(cmd.Context(), seed, blocks)
			if err != nil {
				return cause.Measurement(cmd, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(r))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "MESSAGE\tEXECUTED\tREFUSED")
			for _, m := range r.Messages {
				fmt.Fprintf(w, "%s\t%d\t%d\n", m.Type, m.Executed, m.Refused)
			}
			fmt.Fprintf(w, "\n%d blocks of seed %d end in %s\n", r.Blocks, seed, r.Hash)
			return w.Flush()
		},
	}
	cmd.Flags().Int64Var(&seed, "seed", 1, "what is drawn")
	cmd.Flags().IntVar(&blocks, "blocks", 100, "blocks to play")
	figure.QuickFlag(cmd, &quick)
	return cmd
}

// playElsewhere plays a seed in another process of this program, on one processor, and returns the application hash
// that it ends in.
func playElsewhere(ctx context.Context, seed int64, blocks int) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, "bench", "operations", "--seed", strconv.FormatInt(seed, 10), "--blocks",
		strconv.Itoa(blocks), "-o", "json")
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("random operations in another process: %w", err)
	}
	var r chain.Played
	if err := json.Unmarshal(out, &r); err != nil {
		return "", fmt.Errorf("random operations in another process: %w", err)
	}
	return r.Hash, nil
}
