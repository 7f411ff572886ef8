package job

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/receipt"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
)

// ExplainCommand is starling job explain.
func ExplainCommand(c *terminal.Console) *cobra.Command {
	var dir, network, name string
	cmd := &cobra.Command{
		Use:   "explain [RECEIPT] --out DIR",
		Short: "Explain the receipts of a run",
		Long: `Explain why an account was paid, was not paid, or was slashed: the reason, the arithmetic, what to do about
it, and the moves of the dispute if there was one. It reads the receipts that a run leaves in its output
folder, or asks a network for those of a job, of an epoch (--job epoch/NUMBER: rewards for uptime, work and
bytes served, and what broken promises cost) or of the revenue of a model (--job model/JOB). RECEIPT is the
number of a receipt (its seq), or the beginning of an account's address; without it, all receipts are explained.
starling worker earnings lists those of one account.

With -o json: {"receipts":[{the receipt,"explanation","why","arithmetic":[TEXT],"dispute"}]}, with rounds
counted from 1, amounts in uzen, and the dispute only where there was one:
{"worker","challenger","round","unit","verdict","reason","moves","log":[{"height","by","what"}],...}.`,
		Example: `  starling job explain 12 --out out/quickstart
  starling job explain starling1qx --out out/quickstart
  starling job explain --out out/quickstart -o json
  starling job explain 12 --job job-7f3a --network http://127.0.0.1:26601
  starling job explain starling1qx --job epoch/3 --network http://127.0.0.1:26601`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usage.Error(cmd, fmt.Errorf("%d arguments given, wanted at most one receipt", len(args)))
			case (dir == "") == (network == "") || (network == "") != (name == ""):
				return usage.Error(cmd, errors.New("--out is needed, the output folder of the run; or --network and --job"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			subject := strings.Join(args, "")
			var found []rundir.Explanation
			var err error
			if network == "" {
				found, err = rundir.Explain(dir, subject)
			} else {
				found, err = inspect.JobReceipts(cmd.Context(), network, name, subject)
			}
			if err != nil {
				return explainError(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Items("receipts", found,
					func(e rundir.Explanation) string { return strconv.FormatUint(e.Seq, 10) }))
			}
			for i, e := range found {
				if i > 0 {
					fmt.Println()
				}
				receipt.Print(e)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "out", "", "output folder of the run")
	target.NetworkFlag(cmd, &network)
	cmd.Flags().StringVar(&name, "job", "", "with --network: name of the job there, or epoch/NUMBER, or model/JOB")
	return cmd
}

func explainError(err error) error {
	problem := &terminal.Problem{Code: "NOT_A_RUN", What: err.Error(), Fix: "give the output folder of `starling train`"}
	switch {
	case errors.Is(err, rundir.ErrDamaged):
		problem.Code, problem.Fix = "RUN_DAMAGED", "take the file from a backup; `starling job verify` says whether the "+
			"model is what was attested"
	case errors.Is(err, rundir.ErrNoReceipts):
		problem.Code, problem.Fix = "NO_RECEIPTS", "finish the run with `starling train --resume`"
	case errors.Is(err, rundir.ErrNoReceipt):
		problem.Code, problem.Fix = "NO_SUCH_RECEIPT", "leave the receipt out to see all of them"
	case !errors.Is(err, rundir.ErrNotARun):
		return err
	}
	return terminal.WithExit(problem, terminal.ExitNotFound)
}
