package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/loops"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/verify"
)

// VerifyCommand is starling job verify.
func VerifyCommand(c *terminal.Console) *cobra.Command {
	var opt verify.Options
	var network string
	cmd := &cobra.Command{
		Use:   "verify OUT",
		Short: "Re-execute a run and confirm every attested state root",
		Long: `Re-execute a run offline, from its job file, its data and its lineage, and confirm bit for bit every state
root that was attested. All blobs are hashed and all signatures checked. Exit code 0 means that the model is what the
job and the data determine; 10 names the first round that differs. When the files of the data have changed since,
--shipped-data verifies the run with the data it shipped, whose digest the job's identifier binds.

The updates of a job with numerics: tolerant are not the same bits everywhere: each is held against its
exact execution, within the job's tolerance, and combining them must give the attested roots.

In the folder of a mixture of experts, the run of each is executed again.

OUT may be a run that a client led over the Tinker API: the folder loops/loop-X in the folder of the account that paid.
--network then names the network: the chain has the attested roots, and data of rounds
that are not in the folder are fetched from its parties.

With -o json: {"job","rounds","units","signers","state_root","complete","numerics","distance"}; of a mixture
{"experts":[{"name", ...}]}.`,
		Example: `  starling job verify out/quickstart
  starling job verify out/quickstart --round 3
  starling job verify out/quickstart --job examples/quickstart.yaml -o json
  starling job verify net/consumer/loops/loop-3fa1c09b27de5518 --network http://127.0.0.1:26601`,
		Args: usage.Exactly("OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("round") && opt.Round < 1 {
				return usage.Error(cmd, errors.New("rounds are counted from 1"))
			}
			if led, err := loops.Verify(cmd, c, args[0], network, opt, printVerified); led || err != nil {
				return err
			}
			experts, err := pretrained.ReadMixture(args[0])
			if err != nil {
				return terminal.UnreadableModel("verify", args[0], err, "give the output folder of starling train")
			}
			if experts != nil {
				return verifyExperts(cmd, c, args[0], experts, opt)
			}
			v, err := verifyRun(cmd, c, args[0], opt)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(v, args[0]))
			}
			printVerified(v)
			fmt.Println("not checked receipts.jsonl and the figures of summary.json, report.html and README.md: the chain " +
				"has the first, `starling model card --verify` computes the last")
			return nil
		},
	}
	cmd.Flags().IntVar(&opt.Round, "round", 0, "confirm only the round with this number")
	cmd.Flags().StringVar(&opt.JobFile, "job", "", "job file, in place of the one the run was started with")
	cmd.Flags().StringVar(&network, "network", "", "for a run that a client led: HTTP interface of a validator")
	cmd.Flags().BoolVar(&opt.Shipped, "shipped-data", false,
		"take the data from the folder's blobs, not from the files that the job names")
	return cmd
}

// verifyRun executes the run in a folder again.
func verifyRun(cmd *cobra.Command, c *terminal.Console, dir string, opt verify.Options) (*verify.Result, error) {
	show := c.Counter("round")
	opt.Progress = show
	v, err := verify.Run(cmd.Context(), dir, opt)
	show(0, 0)
	if err != nil {
		return nil, terminal.IfInterrupted(cmd.Context(), cause.Verification(err), "starling job verify "+dir)
	}
	return v, nil
}

func printVerified(v *verify.Result) {
	how := "bit for bit"
	if v.Numerics == spec.Tolerant {
		how = fmt.Sprintf("updates within %.2g of the exact ones", v.Distance)
	}
	fmt.Printf("verified    %d rounds, %s (%d units computed again); signed by %d members\nstate root  %s\n",
		len(v.Rounds), how, v.Units, len(v.Signers), v.StateRoot)
	if v.PeakMemory > 0 {
		fmt.Printf("memory      %s at most\n", terminal.Bytes(v.PeakMemory))
	}
}

// verifyExperts executes the runs of a mixture again, whose weights are those of these runs.
func verifyExperts(cmd *cobra.Command, c *terminal.Console, dir string, list []pretrained.Listed,
	opt verify.Options) error {
	type verified struct {
		Name string `json:"name"`
		*verify.Result
	}
	var all []verified
	for _, e := range list {
		v, err := verifyRun(cmd, c, filepath.Join(dir, e.Path), opt)
		if err != nil {
			return err
		}
		all = append(all, verified{e.Name, v})
		if !c.Form.Machine() {
			fmt.Printf("%s\n", e.Name)
			printVerified(v)
		}
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(map[string]any{"experts": all}, all,
			func(v verified) string { return v.Name }))
	}
	return nil
}
