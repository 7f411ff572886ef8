package dev

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/flagfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/stranger"
)

// strangerCommand attacks a network from outside.
func strangerCommand(c *terminal.Console) *cobra.Command {
	var o stranger.Options
	cmd := &cobra.Command{
		Use:   "stranger --act NAME --network URL",
		Short: "Attack a network of your own from outside",
		Long: `Attack a network of your own until Ctrl-C, as anybody outside of it could, to see that blocks still come and
that jobs still end. --act names the attack:

` + strangerActs() + `

--network takes the HTTP interfaces of several nodes, separated by commas. --home is the key of the attacker: spams
needs one with coins; holds needs one, and is served better if it is registered.

With -o json: {"answers","transactions","held"}, counted until Ctrl-C.`,
		Example: `  starling dev stranger --act floods --network http://127.0.0.1:26601,http://127.0.0.1:26611
  starling dev stranger --act spams --home net/consumer --network http://127.0.0.1:26601`,
		Args: usage.Exactly(), Annotations: terminal.FiguresOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := stranger.Play(cmd.Context(), o)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(done))
			}
			fmt.Printf("%d answers, %d transactions, %d uploads held\n", done.Answers, done.Transactions, done.Held)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Network, "network", "", "HTTP interfaces of nodes")
	cmd.Flags().StringVar(&o.Home, "home", "", "folder of the key (default: none)")
	cmd.Flags().Var(flagfile.OneOf(&o.Act, stranger.Names()...), "act", "the attack")
	_ = cmd.MarkFlagRequired("network") // they are flags of the command
	_ = cmd.MarkFlagRequired("act")
	return cmd
}

// strangerActs says what each attack does.
func strangerActs() string {
	var lines []string
	for _, name := range stranger.Names() {
		lines = append(lines, fmt.Sprintf("  %-8s%s", name, stranger.About(name)))
	}
	return strings.Join(lines, "\n")
}
