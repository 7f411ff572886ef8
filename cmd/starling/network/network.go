// Package network is starling network: commands that make, show, check and govern a network. Its processes are started
// by those of cmd/starling/validator and cmd/starling/worker.
package network

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/attested"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/validator"
)

// Command is starling network.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("network", "See, check, make and govern networks",
		`Make a network of validators, workers and verifiers that are processes of their own, on one machine or on
many, and see whether one works. docs/operate.md leads through it.`,
		initCommand(c), healthCommand(c), peersCommand(c), checkCommand(c), attested.List(c), faucetCommand(c),
		StatusCommand(c), EconomicsCommand(c), GovCommand(c))
}

// InitFlags are those of a new network.
func InitFlags(cmd *cobra.Command, o *validator.NetworkOptions) {
	f := cmd.Flags()
	f.StringVar(&o.ChainID, "chain-id", "starling-local-1", "name of the chain")
	f.IntVar(&o.Validators, "validators", 1, "number of validators")
	f.IntVar(&o.Workers, "workers", 4, "number of worker accounts that have coins")
	f.IntVar(&o.Verifiers, "verifiers", 2, "number of verifier accounts that have coins")
	f.StringSliceVar(&o.Hosts, "host", []string{"127.0.0.1"},
		"address at which everybody reaches the validators: one for all, or one for each")
	f.IntVar(&o.Port, "port", 26600, "first port: validator i takes this + 10 i, and the three after it for CometBFT's "+
		"RPC, gRPC and REST")
	f.StringSliceVar(&o.Coins, "coin", nil, "a coin of this network besides ZEN, of which the accounts have some, as "+
		"usdc:6 with its decimals (repeatable)")
	f.DurationVar(&o.BlockTime, "block-time", time.Second, "time between two blocks")
	usage.PrivateFlag(cmd, &o.Private)
}

func initCommand(c *terminal.Console) *cobra.Command {
	var o validator.NetworkOptions
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make the genesis, the keys and the folders of a new network",
		Long: `Make the folder of a new network: genesis.json, network.json, and a folder with keys for every validator,
worker and verifier and for a consumer. All their accounts have coins. Nothing is overwritten.

Copy a folder to the machine where its owner runs it; keys are in it, so keep it secret. The owner of a folder writes
its backup phrase down: starling validator identity --home HOME --phrase, starling worker identity --home HOME --phrase.
With -o json, standard output carries the content of network.json.`,
		Example: `  starling network init net
  starling network init net --validators 4 --workers 8 --host 10.0.0.7
  starling network init net --validators 3 --host 10.0.0.7,10.0.0.8,10.0.0.9
  starling network init net -o json`,
		Args: usage.Exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := validator.InitNetwork(args[0], o)
			if err != nil {
				return cause.Network(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(n, args[0]))
			}
			fmt.Printf("%s with %s, %s, %s and a consumer in %s\n\n", n.ChainID,
				terminal.Counted(len(n.Validators), "validator"), terminal.Counted(len(n.Workers), "worker"),
				terminal.Counted(len(n.Verifiers), "verifier"), args[0])
			fmt.Printf("next: starling validator up --home %s/%s\n      starling worker up --home %s/%s --network %s\n",
				args[0], n.Validators[0], args[0], "worker-0", n.RPC[0])
			fmt.Printf("\nbackups, to be kept secret: starling validator identity --home %s/%s --phrase\n", args[0],
				n.Validators[0])
			fmt.Printf("                                 starling worker identity --home %s/%s --phrase\n", args[0], n.Consumer)
			return nil
		},
	}
	InitFlags(cmd, &o)
	return cmd
}
