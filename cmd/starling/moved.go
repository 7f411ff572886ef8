package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/account"
	"github.com/starling-network/starling/cmd/starling/dev"
	"github.com/starling-network/starling/cmd/starling/job"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/manual"
	"github.com/starling-network/starling/cmd/starling/model"
	"github.com/starling-network/starling/cmd/starling/network"
	"github.com/starling-network/starling/cmd/starling/terminal"
)

// addMoved adds commands under the names that they had in the release before, hidden from the help. They do what the
// commands of today do, and say under which names those are found.
func addMoved(c *terminal.Console, root *cobra.Command) {
	for _, old := range []struct {
		cmd *cobra.Command
		now string
	}{
		{network.Command(c), "network"}, {network.StatusCommand(c), "network status"},
		{network.EconomicsCommand(c), "network economics"},
		{network.GovCommand(c), "network gov"}, {account.StakeCommand(c), "account stake"},
		{jobfile.InitCommand(c), "job init"},
		{job.VerifyCommand(c), "job verify"},
		{job.ExplainCommand(c), "job explain"}, {job.ExportMetricsCommand(c), "job export-metrics"},
		{model.GenerateCommand(c), "model generate"},
		{dev.ManCommand(root), "dev man"}, {dev.ExitCodesCommand(c), "dev exit-codes"},
	} {
		switch old.cmd.Name() {
		case "network":
			old.cmd.Use = "net"
		case "export-metrics":
			old.cmd.Use = strings.Replace(old.cmd.Use, "export-metrics", "export", 1)
		}
		old.cmd.Hidden = true
		manual.Moved(old.cmd, "starling "+old.cmd.Name(), "starling "+old.now, &c.Quiet)
		root.AddCommand(old.cmd)
	}
}
