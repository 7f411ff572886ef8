package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/role/adversary"
)

// devAdversary is worker up for a party that breaks the rules.
func (c *cli) devAdversary() *cobra.Command {
	var o node.WorkerOptions
	var act string
	cmd := c.takePart(&o)
	takes := cmd.RunE
	cmd.Use = "adversary --act NAME --home DIR --network URL"
	cmd.Short = "Take part in a network of your own as somebody who breaks the rules"
	cmd.Long = `Take part in a network as starling worker up does, but for one thing: this process breaks the rules in the way that
--act names, to see what your network makes of it. It stakes coins like any other participant, and loses them.
Acts are ` + strings.Join(adversary.Names(), ", ") + `; starling sim attacks says what each does.`
	cmd.Example = `  starling dev adversary --act skips --home net/worker-3 --network http://127.0.0.1:26601
  starling dev adversary --act stamps --role verifier --home net/verifier-0 --network http://127.0.0.1:26601`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Act, _ = adversary.Named(act) // the flag takes no other names
		return takes(cmd, args)
	}
	cmd.Flags().Var(flagfile.OneOf(&act, adversary.Names()...), "act", "how it breaks the rules")
	_ = cmd.MarkFlagRequired("act") // it is a flag of the command
	return cmd
}
