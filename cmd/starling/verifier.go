package main

import (
	"github.com/spf13/cobra"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/network/replica"
	"github.com/starling-network/starling/node"
)

func (c *cli) verifier() *cobra.Command {
	return group("verifier", "Look whether others work right", `Do units of jobs again that others have done, and dispute what is wrong. Who verifies for pay starts
starling worker up --role verifier, which does this in its spare time, too.`, c.verifierWatch())
}

func (c *cli) verifierWatch() *cobra.Command {
	var o node.WorkerOptions
	cmd := &cobra.Command{
		Use:   "watch --home DIR --network URL",
		Short: "Look at the work in runs that you have no part in, and challenge what is wrong, until Ctrl-C",
		Long: `Follow the runs of a network, one at a time, fetch what their units start from, and do units of open rounds
again, in an order that the key of the folder gives and nobody else knows. What is wrong is challenged and disputed
to the end, by itself.

Nothing is registered and no work is offered. A challenge takes a bond from the account, the smallest stake of a verifier.
Who is right gets a part of what the liar loses; who is wrong, or falls silent in the dispute, loses half of the
bond. What is left of it comes back with starling stake remove.

The first Ctrl-C stops when nothing is open that was challenged, the second at once.`,
		Example: `  starling verifier watch --home ~/.starling-watch --network http://10.0.0.7:26601`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say, o.Version = c.say, binaryVersion()
			return workerError(node.RunWatcher(cmd.Context(), o))
		},
	}
	metricsFlag(cmd, &o.Metrics)
	f := cmd.Flags()
	f.StringVar(&o.Home, "home", "", "folder of the key and the blobs")
	f.StringVar(&o.RPC, "network", "", "HTTP interface of a validator, or of several, separated by commas: the next is asked when one is gone")
	f.IntVar(&o.Threads, "threads", kernel.Cores, "threads of the execution of a unit")
	f.StringSliceVar(&o.Listen, "listen", nil, "multiaddrs to listen on for peers (default: any port of the loopback)")
	o.Disk, o.Keep, o.Replicas = node.DefaultDisk, node.DefaultKeep, replica.Factor
	f.Var(&o.Disk, "disk", "what blobs may take: a size such as 20GiB, or a part of the free disk")
	for _, name := range []string{"home", "network"} {
		_ = cmd.MarkFlagRequired(name) // they are there
	}
	return cmd
}
