// Package validator is starling validator: commands that make, start, examine and stake for validators. The process
// itself is in node/validator.
package validator

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/manual"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/payout"
	"github.com/starling-network/starling/node/validator"
)

// Command is starling validator.
func Command(c *terminal.Console) *cobra.Command {
	validator := usage.Group("validator", "Run a validator",
		`Run a validator: one of those who decide together what the chain says. A chain continues while fewer than a
third of them are down. --home is the folder of a validator.`,
		upCommand(c), statusCommand(c), dutiesCommand(c), earningsCommand(c), logsCommand(c), joinCommand(c),
		bondCommand(c), unbondCommand(c), unjailCommand(c), identityCommand(c), exportCommand(c), importCommand(c),
		replayCommand(c))
	for _, cmd := range validator.Commands() {
		manual.HomeByFlag(cmd, &c.Quiet)
	}
	return validator
}

func upCommand(c *terminal.Console) *cobra.Command {
	return UpOver(c, new(validator.Options))
}

// UpOver is validator up over options of which the caller may have set some.
func UpOver(c *terminal.Console, o *validator.Options) *cobra.Command {
	reserve := disk.Share{Bytes: validator.DefaultReserve}
	var sources []string
	cmd := &cobra.Command{
		Use:   "up --home DIR",
		Short: "Run the validator of a folder until Ctrl-C",
		Long: `Run a validator: it takes part in consensus, adds to the beacon and judges the last question of disputes.
--home is a validator's folder that starling network init or starling validator join made; of join --full it is a full
node, which only follows the chain and answers clients. Errors inside the chain are written to validator.log
there. Stop and start it as you like: it continues where it was, and never signs two votes for one step. When its
disk is nearly full (--reserve) it stops, says so (DISK_FULL), and continues by itself when there is room.`,
		Example: `  starling validator up --home net/validator-0
  starling validator up --home net/validator-0 --metrics 127.0.0.1:9464`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Home, o.Version, o.Say, o.Reserve = args[0], version.Binary(), c.Say, reserve.Bytes
			if o.Reserve == 0 {
				return usage.Error(cmd, errors.New("--reserve is a number of bytes, such as 256MiB"))
			}
			o.Sources = nil
			for _, text := range sources {
				s, err := payout.ParseSource(text)
				if err != nil {
					return usage.Error(cmd, fmt.Errorf("--payout-rpc: %w", err))
				}
				o.Sources = append(o.Sources, s)
			}
			err := validator.Run(cmd.Context(), *o)
			if errors.Is(err, validator.ErrRoomAgain) {
				err = startAgain()
			}
			return cause.Network(err)
		},
	}
	cmd.Flags().StringArrayVar(&sources, "payout-rpc", nil,
		"CHAIN=URL of a node of an Ethereum-style chain, whose deposits this validator reports; CHAIN=URL#BLOCK: from "+
			"this block on")
	cmd.Flags().Var(&reserve, "reserve", "free space of the disk below which the validator stops until there is room")
	cmd.Flags().Uint64Var(&o.Every, "snapshot-every", chain.DefaultSnapshotEvery,
		"blocks between two snapshots of the state, which validators that join start from; 0: none")
	cmd.Flags().StringVar(&o.GasPrice, "gas-price", "",
		"uzen that a transaction pays for a unit of gas, such as 0.02, where that is more than the chain asks; 0: nothing "+
			"(default: what the chain asks)")
	usage.MetricsFlag(cmd, &o.Metrics)
	return cmd
}

func exportCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "export --home DIR",
		Short: "Print the whole state of a stopped validator as a genesis",
		Long: `Print the genesis of a chain that continues where the stopped validator of a folder is, with the next height:
accounts, stakes, offers, orders, runs and disputes, everything but old blocks and transactions. With -o json it
is on one line.`,
		Example: `  starling validator export --home net/validator-0 > genesis.json`,
		Args:    usage.Exactly(),
		RunE: func(_ *cobra.Command, args []string) error {
			doc, err := validator.ExportChain(args[0])
			if err != nil {
				return cause.Network(err)
			}
			return c.PrintDocument(append(doc, '\n'), args[0])
		},
	}
}

func importCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "import GENESIS --home DIR",
		Short: "Begin the chain of a genesis in the folder of a stopped validator",
		Long: `Put a genesis, such as validator export prints, in the folder of a stopped validator. The chain that the folder
holds is set aside in it; keys stay. Every validator of the chain imports the same file.`,
		Example: `  starling validator import --home net/validator-0 genesis.json`,
		Args:    usage.Exactly("GENESIS"),
		RunE: func(_ *cobra.Command, args []string) error {
			aside, err := validator.ImportChain(args[0], args[1])
			if err != nil {
				return cause.Network(err)
			}
			if aside != "" {
				c.Say("the chain that was there is in " + aside)
			}
			return nil
		},
	}
}
