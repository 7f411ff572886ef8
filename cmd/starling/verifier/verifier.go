// Package verifier is starling verifier: the command that examines runs of others for nothing. Verifiers that are paid
// are started by starling worker.
package verifier

import (
	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/cmd/starling/worker"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/network/replica"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/provider"
)

// Command is starling verifier.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("verifier", "Re-execute the work of others, and dispute what is wrong",
		`Execute units of jobs again that others have done, and dispute wrong ones. To verify for pay, start starling worker
up --role verifier, which does this in its spare time, too.`,
		watchCommand(c))
}

func watchCommand(c *terminal.Console) *cobra.Command {
	var o provider.Options
	cmd := &cobra.Command{
		Use:   "watch --home DIR --network URL",
		Short: "Look at the work in runs that you have no part in, and challenge what is wrong, until Ctrl-C",
		Long: `Follow the runs of a network, one at a time, fetch what their units start from, and do units of open rounds
again, in an order that only the holder of the key knows. The command challenges every wrong unit that it finds, and
plays the dispute to its end.

The account neither registers nor offers work. A challenge takes a bond from the account, the smallest stake of a
verifier. A challenger that wins gets a share of the slashed stake; a challenger that loses, or stops answering, loses
half of the bond. starling account stake remove returns the rest of the bond.

The first Ctrl-C stops when nothing is open that was challenged, the second at once.`,
		Example: `  starling verifier watch --home ~/.starling-watch --network http://10.0.0.7:26601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Say, o.Version = c.Say, version.Binary()
			return cause.Worker(provider.RunWatcher(cmd.Context(), o))
		},
	}
	usage.MetricsFlag(cmd, &o.Metrics)
	f := cmd.Flags()
	f.StringVar(&o.Home, "home", "", "folder of the key and the blobs")
	f.StringVar(&o.RPC, "network", "", "HTTP interface of a validator, or of several, separated by commas: the next is "+
		"asked when one is gone")
	f.IntVar(&o.Threads, "threads", kernel.Cores, "threads of the execution of a unit")
	f.StringSliceVar(&o.Listen, "listen", nil, "multiaddrs to listen on for peers (default: any port of the loopback)")
	worker.GiveUpFlag(f, &o.GiveUp)
	o.Disk, o.Keep, o.Replicas = member.DefaultDisk, member.DefaultKeep, replica.Factor
	f.Var(&o.Disk, "disk", "what blobs may take: a size such as 20GiB, or a part of the free disk")
	for _, name := range []string{"home", "network"} {
		_ = cmd.MarkFlagRequired(name) // they are there
	}
	return cmd
}
