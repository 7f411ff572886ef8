package account

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/bridging"
)

// bridgeCommand is starling account bridge.
func bridgeCommand(c *terminal.Console) *cobra.Command {
	return usage.Group("bridge", "Move coins between two networks by IBC",
		`Move coins between two networks by IBC, such as a stablecoin in which jobs are then ordered. Each network checks
proofs of the other with a light client; an account that relays can delay a transfer, and neither take nor make coins.
Any account may relay, and several may at a time. The validators that are asked keep an index of transactions.`,
		bridgeOpenCommand(c), bridgeShowCommand(c), bridgeSendCommand(c), bridgeRelayCommand(c))
}

// sidesFlags are the flags of the two networks.
func sidesFlags(cmd *cobra.Command, s *bridging.Sides) {
	f := cmd.Flags()
	f.StringVar(&s.Home, "home", "", "folder of the account that acts")
	f.StringVar(&s.Network, "network", "", "HTTP interface of a validator of this network")
	f.StringVar(&s.Other, "to", "", "HTTP interface of a validator of the other network")
	f.StringVar(&s.OtherHome, "to-home", "", "folder of the account that acts there (default: the same account)")
}

func channelFlag(cmd *cobra.Command, s *bridging.Sides) {
	cmd.Flags().StringVar(&s.Channel, "channel", "channel-0", "channel of the bridge on this network")
}

func wantSides(cmd *cobra.Command, s bridging.Sides) error {
	if s.Home == "" || s.Network == "" || s.Other == "" {
		return usage.Error(cmd, errors.New("--home, --network and --to are needed: an account, and a validator of each "+
			"network"))
	}
	return nil
}

func bridgeOpenCommand(c *terminal.Console) *cobra.Command {
	var s bridging.Sides
	cmd := &cobra.Command{
		Use:   "open --home DIR --network URL --to URL",
		Short: "Open a channel for transfers between two networks",
		Long: `Make a light client of each network on the other, and open a connection and a channel for transfers between
them. It prints the channel on both networks, and the denomination that each coin of the other network has here, with
which starling network gov coin registers it.

With -o json: {"here":{"chain_id","client","connection","channel"},"there":{as here},
"coins":[{"coin":{"denom","symbol","decimals"},"denom"}]}.`,
		Example: `  starling account bridge open --home me --network http://127.0.0.1:26601 --to http://127.0.0.1:27601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantSides(cmd, s); err != nil {
				return err
			}
			b, err := s.Open(cmd.Context())
			if err != nil {
				return err
			}
			return printBridge(c, b)
		},
	}
	sidesFlags(cmd, &s)
	return cmd
}

func bridgeShowCommand(c *terminal.Console) *cobra.Command {
	var s bridging.Sides
	cmd := &cobra.Command{
		Use:   "show --home DIR --network URL --to URL",
		Short: "Show the ends of a bridge, and the names of its coins",
		Long: `Show the ends of a bridge, and the denomination that each coin of the other network has here.

With -o json: what starling account bridge open prints.`,
		Example: `  starling account bridge show --home me --network http://127.0.0.1:26601 --to http://127.0.0.1:27601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantSides(cmd, s); err != nil {
				return err
			}
			b, err := s.Show(cmd.Context())
			if err != nil {
				return err
			}
			return printBridge(c, b)
		},
	}
	sidesFlags(cmd, &s)
	channelFlag(cmd, &s)
	return cmd
}

func printBridge(c *terminal.Console, b bridging.Bridge) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(b, b.Here.Channel))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "here\t%s, %s, %s, %s\n", b.Here.ChainID, b.Here.Channel, b.Here.Connection, b.Here.Light)
	fmt.Fprintf(w, "there\t%s, %s, %s, %s\n", b.There.ChainID, b.There.Channel, b.There.Connection, b.There.Light)
	for _, v := range b.Coins {
		fmt.Fprintf(w, "%s\t%s here: starling network gov coin %s --denom %s --decimals %d\n", v.Coin.Symbol, v.Denom,
			cmp.Or(v.Symbol(), "SYMBOL"), v.Denom, v.Coin.Exponent)
	}
	return w.Flush()
}

func bridgeSendCommand(c *terminal.Console) *cobra.Command {
	var s bridging.Sides
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "send ADDRESS AMOUNT --home DIR --network URL --channel CHANNEL",
		Short: "Send coins to an account of the other network",
		Long: `Send coins of an account to an account of the other network. They leave the account at once, and arrive when
they are relayed (starling account bridge relay); if that does not happen in time, they come back. AMOUNT is in ZEN, or
in another coin of this network with its symbol.

With -o json: {"to","amount","coin","channel","height","hash"}; the amount is in grains.`,
		Example: `  starling account bridge send starling1qx... 25usdc --home me --network http://127.0.0.1:27601`,
		Args:    usage.Exactly("ADDRESS", "AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(target.WantAddress(args[0]), target.WantCoins(cmd, args[1])); err != nil {
				return err
			}
			if s.Home == "" || s.Network == "" {
				return usage.Error(cmd, errors.New("--home and --network are needed"))
			}
			a, r, err := s.Send(cmd.Context(), args[0], args[1], within)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(map[string]any{"to": args[0], "amount": a.Grains, "coin": a.Coin,
					"channel": s.Channel, "height": r.Height, "hash": r.Hash}, r.Hash))
			}
			fmt.Printf("%s are on their way to %s, and come back if they are not relayed within %v\n", a, args[0], within)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Home, "home", "", "folder of the account that sends")
	f.StringVar(&s.Network, "network", "", "HTTP interface of a validator of its network")
	f.DurationVar(&within, "within", time.Hour, "time after which the coins come back")
	channelFlag(cmd, &s)
	return cmd
}

func bridgeRelayCommand(c *terminal.Console) *cobra.Command {
	s := bridging.Sides{}
	cmd := &cobra.Command{
		Use:   "relay --home DIR --network URL --to URL --channel CHANNEL",
		Short: "Relay packets in both directions, until Ctrl-C",
		Long: `Relay the packets of a bridge in both directions until Ctrl-C: transfers, their acknowledgements, and the
return of those that are too late. The accounts pay gas for it. The packets that wait are read from the two networks,
so that nothing is lost if the command stops, and another account may continue.`,
		Example: `  starling account bridge relay --home me --network http://127.0.0.1:26601 --to http://127.0.0.1:27601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantSides(cmd, s); err != nil {
				return err
			}
			s.Say = func(text string) { fmt.Fprintln(os.Stderr, text) }
			return s.Relay(cmd.Context())
		},
	}
	sidesFlags(cmd, &s)
	channelFlag(cmd, &s)
	cmd.Flags().DurationVar(&s.Pause, "pause", time.Second, "time between two looks for packets")
	return cmd
}
