package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/manual"
)

// addMoved adds commands under the names that they had in the release before, hidden from the help. They do what the
// commands of today do, and say under which names those are found.
func addMoved(c *cli, root *cobra.Command) {
	for _, old := range []struct {
		cmd *cobra.Command
		now string
	}{
		{c.network(), "network"}, {c.status(), "network status"}, {c.economics(), "network economics"},
		{c.gov(), "network gov"}, {c.stake(), "account stake"}, {c.init(), "job init"}, {c.verify(), "job verify"},
		{c.explain(), "job explain"}, {c.export(), "job export-metrics"}, {c.generate(), "model generate"},
		{man(root), "dev man"}, {exitCodes(c), "dev exit-codes"},
	} {
		switch old.cmd.Name() {
		case "network":
			old.cmd.Use = "net"
		case "export-metrics":
			old.cmd.Use = strings.Replace(old.cmd.Use, "export-metrics", "export", 1)
		}
		old.cmd.Hidden = true
		manual.Moved(old.cmd, "starling "+old.cmd.Name(), "starling "+old.now, &c.quiet)
		root.AddCommand(old.cmd)
	}
}
