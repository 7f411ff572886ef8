package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/node"
)

func (c *cli) validator() *cobra.Command {
	return group("validator", "Run a validator", `Run a validator: one of those who decide together what the chain says. A chain goes on while fewer than a
third of them are down.`, c.validatorUp(), c.validatorStatus())
}

func (c *cli) validatorUp() *cobra.Command {
	var o node.ValidatorOptions
	cmd := &cobra.Command{
		Use:   "up HOME",
		Short: "Run the validator of a folder until Ctrl-C",
		Long: `Run a validator: it takes part in consensus, adds to the beacon and judges the last question of disputes.
HOME is a validator's folder of a network that starling net init made. What goes wrong inside the chain
is written to validator.log there. Stop and start it as you like: it goes on where it was, and never
signs two votes for one step.`,
		Example: `  starling validator up net/validator-0
  starling validator up net/validator-0 --metrics 127.0.0.1:9464`,
		Args: exactly("HOME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Home, o.Version, o.Say = args[0], binaryVersion(), c.say
			return networkError(node.RunValidator(cmd.Context(), o))
		},
	}
	metricsFlag(cmd, &o.Metrics)
	return cmd
}

func metricsFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "metrics", "", "host:port where Prometheus finds metrics, such as 127.0.0.1:9464 (default: nowhere)")
}

// say prints a line of news to standard error.
func (c *cli) say(text string) {
	if !c.quiet {
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), text)
	}
}
