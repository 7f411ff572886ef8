package validator

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/cmd/starling/party"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

func joinCommand(c *terminal.Console) *cobra.Command {
	o := validator.JoinOptions{}
	cmd := &cobra.Command{
		Use:   "join --home DIR --network URL --host ADDRESS",
		Short: "Make the folder of a validator that joins a chain which others run",
		Long: `Make the folder of a new validator of a chain that others run: its keys, the chain's genesis, and where the
others are. The validator at --network is trusted for the state of the chain, so name one that you trust;
with several, separated by commas, the headers of one are compared with the others'.

The new validator gets the state from a snapshot of another, checked against headers that lead to it from the block that
is printed here, and then the blocks after it. With --snapshot-every 0, and on a chain of fewer than 2,000 blocks, it
executes all blocks from the first on, which needs no trust but in the genesis. Start it with starling validator up. It
follows the chain at once, and votes when starling validator bond has staked for it.

With --full it makes the folder of a full node instead: a process without any key of a validator that follows the chain
and answers clients (CometBFT's RPC, gRPC, REST). With --private the interfaces for clients are on the loopback: a
validator that answers its own machine only, next to full nodes that answer everyone.

Keys that starling validator identity --restore has put in the folder are used; new ones have a backup phrase, which
is shown.

With -o json: {"chain_id","home","operator","rpc","peers","sync":{"servers","height","hash"},"phrase"}, the phrase
only when the keys are new.`,
		Example: `  starling validator join --home my-validator --network http://10.0.0.7:26601 --host 10.0.0.9
  starling validator join --home my-validator --network http://10.0.0.7:26601,http://10.0.0.8:26611` +
			` --host 10.0.0.9 --snapshot-every 0
  starling validator join --home my-node --full --network http://10.0.0.7:26601 --host 10.0.0.9`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, o.Network); err != nil {
				return err
			}
			o.Home = args[0]
			j, err := validator.Join(cmd.Context(), o)
			if errors.Is(err, keystore.ErrIsValidator) {
				return terminal.WithExit(&terminal.Problem{Code: "VALIDATOR_EXISTS", What: err.Error(),
					Why: "keys are never overwritten", Fix: "give another folder"}, terminal.ExitConflict)
			}
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(j, j.Home))
			}
			fmt.Printf("a %s of %s in %s, with %d peers\n", map[bool]string{false: "validator", true: "full node"}[o.Full],
				j.ChainID, j.Home, len(j.Peers))
			if j.Sync != nil {
				fmt.Printf("trusted: block %d, hash %s\n", j.Sync.Height, j.Sync.Hash)
			}
			if o.Full {
				fmt.Printf("\nnext: starling validator up --home %s\n", j.Home)
				return nil
			}
			party.PrintPhrase(j.Phrase, "", "starling validator identity --home "+j.Home+" --restore")
			fmt.Printf("\nnext: starling validator up --home %s\n      starling account send %s 100.1 --home DIR --network "+
				"%s\n      starling validator bond --home %s 100\n", j.Home, j.Operator, o.Network, j.Home)
			return nil
		},
	}
	target.NetworkFlag(cmd, &o.Network)
	f := cmd.Flags()
	f.BoolVar(&o.Full, "full", false, "make a full node, which follows the chain and answers clients, and is no validator")
	usage.PrivateFlag(cmd, &o.Private)
	f.StringVar(&o.Host, "host", "127.0.0.1", "address at which everybody reaches this validator")
	f.IntVar(&o.Port, "port", 26600, "port for other validators; the three after it are for CometBFT's RPC, gRPC and REST")
	f.DurationVar(&o.BlockTime, "block-time", time.Second, "time between two blocks, as the other validators have it")
	f.Uint64Var(&o.Every, "snapshot-every", chain.DefaultSnapshotEvery,
		"blocks between two snapshots, as the other validators have it; 0: use none")
	return cmd
}
