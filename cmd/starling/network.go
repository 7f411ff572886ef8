package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

// group is a command that only holds others. Its help shows their examples.
func group(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	var examples []string
	for _, c := range commands {
		first, _, _ := strings.Cut(c.Example, "\n")
		examples = append(examples, first)
	}
	examples = examples[:min(len(examples), groupExamples)]
	cmd.Example = strings.Join(examples, "\n")
	return cmd
}

// groupExamples is how many commands of a group have their first example in the help of the group.
const groupExamples = 3

func (c *cli) network() *cobra.Command {
	return group("network", "See, check, make and govern networks", `Make a network of validators, workers and verifiers
that are processes of their own, on one machine or on many, and see whether one works. docs/operate.md leads through
it.`, c.netInit(), c.netHealth(), c.netPeers(), c.netCheck(), c.status(), c.economics(), c.gov())
}

func networkFlags(cmd *cobra.Command, o *validator.NetworkOptions) {
	f := cmd.Flags()
	f.StringVar(&o.ChainID, "chain-id", "starling-local-1", "name of the chain")
	f.IntVar(&o.Validators, "validators", 1, "number of validators")
	f.IntVar(&o.Workers, "workers", 4, "number of worker accounts that have coins")
	f.IntVar(&o.Verifiers, "verifiers", 2, "number of verifier accounts that have coins")
	f.StringSliceVar(&o.Hosts, "host", []string{"127.0.0.1"},
		"address at which everybody reaches the validators: one for all, or one for each")
	f.IntVar(&o.Port, "port", 26600, "first port: validator i takes this + 10 i, and the three after it for CometBFT's "+
		"RPC, gRPC and REST")
	f.DurationVar(&o.BlockTime, "block-time", time.Second, "time between two blocks")
	privateFlag(cmd, &o.Private)
}

func (c *cli) netInit() *cobra.Command {
	var o validator.NetworkOptions
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make the genesis, the keys and the folders of a new network",
		Long: `Make the folder of a new network: genesis.json, network.json, and a folder with keys for every validator,
worker and verifier and for a consumer. All their accounts have coins. Nothing is overwritten.

Copy a folder to the machine where its owner runs it; keys are in it, so keep it secret. Who owns a folder writes its
backup down: starling validator identity --home HOME --phrase, starling worker identity --home HOME --phrase. With -o
json, standard output carries the content of network.json.`,
		Example: `  starling network init net
  starling network init net --validators 4 --workers 8 --host 10.0.0.7
  starling network init net --validators 3 --host 10.0.0.7,10.0.0.8,10.0.0.9
  starling network init net -o json`,
		Args: exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := validator.InitNetwork(args[0], o)
			if err != nil {
				return networkError(err)
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, terminal.One(n, args[0]))
			}
			fmt.Printf("%s with %d validators, %d workers, %d verifiers and a consumer in %s\n\n", n.ChainID, len(n.Validators),
				len(n.Workers), len(n.Verifiers), args[0])
			fmt.Printf("next: starling validator up --home %s/%s\n      starling worker up --home %s/%s --network %s\n",
				args[0], n.Validators[0], args[0], "worker-0", n.RPC[0])
			fmt.Printf("\nbackups, for nobody else to see: starling validator identity --home %s/%s --phrase\n", args[0],
				n.Validators[0])
			fmt.Printf("                                 starling worker identity --home %s/%s --phrase\n", args[0], n.Consumer)
			return nil
		},
	}
	networkFlags(cmd, &o)
	return cmd
}

// networkError gives the errors of networks their codes.
func networkError(err error) error {
	stopped := (*client.Stopped)(nil)
	switch {
	case errors.As(err, &stopped):
		return terminal.WithExit(&terminal.Problem{Code: stopped.Code, What: "the validator is stopped", Why: stopped.Why,
			Fix: stopped.Fix}, terminal.ExitFailure)
	case errors.Is(err, keystore.ErrNetworkExists):
		return terminal.WithExit(&terminal.Problem{Code: "NETWORK_EXISTS", What: err.Error(),
			Why: "keys are never overwritten", Fix: "give another folder, or remove this one"}, terminal.ExitConflict)
	case errors.Is(err, keystore.ErrNoNetwork):
		return terminal.WithExit(&terminal.Problem{Code: "NETWORK_NOT_FOUND", What: err.Error(),
			Fix: "make one with starling network init"}, terminal.ExitNotFound)
	case errors.Is(err, chain.ErrClock):
		return terminal.WithExit(&terminal.Problem{Code: "CLOCK_WRONG", What: err.Error(),
			Why: "a validator whose clock is slow cannot follow the others",
			Fix: "set the clock, best by NTP, and start the validator again: it catches up"}, terminal.ExitConflict)
	case errors.Is(err, keystore.ErrNoValidator):
		return terminal.WithExit(&terminal.Problem{Code: "VALIDATOR_NOT_FOUND", What: err.Error(),
			Fix: "give a validator's folder of a network that starling network init made"}, terminal.ExitNotFound)
	}
	return err
}
