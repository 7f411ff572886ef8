package dev

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain/deviant"
	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/manual"
	"github.com/starling-network/starling/cmd/starling/terminal"
	commands "github.com/starling-network/starling/cmd/starling/validator"
	"github.com/starling-network/starling/cmd/starling/worker"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/validator"
	"github.com/starling-network/starling/role/adversary/catalog"
)

// adversaryCommand is worker up for a party that breaks the rules.
func adversaryCommand(c *terminal.Console) *cobra.Command {
	var o provider.Options
	var act string
	cmd := worker.UpOver(c, &o)
	takes := cmd.RunE
	cmd.Use = "adversary --act NAME --home DIR --network URL"
	cmd.Short = "Take part in a network of your own as a party that breaks the rules"
	cmd.Long = `Take part in a network as starling worker up does, but for one thing: this process breaks the rules in the
way that --act names, to see what your network makes of it. It stakes coins like any other participant, and loses them.
Acts are ` + strings.Join(catalog.Names(), ", ") + `; starling sim attacks says what each does.`
	cmd.Example = `  starling dev adversary --act skips --home net/worker-3 --network http://127.0.0.1:26601
  starling dev adversary --act stamps --role verifier --home net/verifier-0 --network http://127.0.0.1:26601
  starling dev adversary --act fakes --circle /tmp/circle --home net/worker-3 --network http://127.0.0.1:26601
  starling dev adversary --act shields --circle /tmp/circle --role verifier --home net/verifier-1 ` +
		`--network http://127.0.0.1:26601`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Act, _ = catalog.Named(act) // the flag takes no other names
		return takes(cmd, args)
	}
	cmd.Flags().StringVar(&o.Circle, "circle", "", "folder in which accomplices tell each other what they made up "+
		"(default: it has none)")
	cmd.Flags().Var(flagfile.OneOf(&act, catalog.Names()...), "act", "how it breaks the rules")
	_ = cmd.MarkFlagRequired("act") // it is a flag of the command
	return cmd
}

// deviantCommand is validator up for a validator that breaks the rules.
func deviantCommand(c *terminal.Console) *cobra.Command {
	var o validator.Options
	var act string
	var against []string
	cmd := commands.UpOver(c, &o)
	runs := cmd.RunE
	cmd.Use = "deviant --home DIR --act NAME"
	cmd.Short = "Run a validator of a network of your own that breaks the rules"
	cmd.Long = `Run the validator of a folder as starling validator up does, but for one thing: it breaks the rules in
the way that --act
names, to see what your network makes of it:
` + deviations()
	cmd.Example = `  starling dev deviant --home net/validator-3 --act withholds
  starling dev deviant --home net/validator-3 --act censors --against starling1f94e6sv6etpl95l33jtzykfwxqgrdz7gyh8yz5`
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.Act, err = deviant.Named(act, against); err != nil {
			return err
		}
		return runs(cmd, args)
	}
	cmd.Flags().Var(flagfile.OneOf(&act, deviant.Names()...), "act", "how it breaks the rules")
	cmd.Flags().StringSliceVar(&against, "against", nil, "accounts whose moves a validator that censors leaves out")
	_ = cmd.MarkFlagRequired("act") // it is a flag of the command
	manual.HomeByFlag(cmd, &c.Quiet)
	return cmd
}

// deviations says what each act of a validator is.
func deviations() string {
	var lines []string
	for _, name := range deviant.Names() {
		lines = append(lines, name+" "+deviant.About(name))
	}
	return strings.Join(lines, ";\n") + "."
}
