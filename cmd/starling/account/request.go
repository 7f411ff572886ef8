package account

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/faucet"
	"github.com/starling-network/starling/node/home"
)

func requestCommand(c *terminal.Console) *cobra.Command {
	var folder, url string
	cmd := &cobra.Command{
		Use:   "request [ADDRESS] --faucet URL",
		Short: "Ask the faucet of a test network for coins",
		Long: `Ask a faucet (starling network faucet) for coins of a test network: for an address, or for the key of a folder.
It returns when they are in a block. A faucet gives an address coins once a day, and has limits for a host and for all.

A worker needs no coins to begin: starling worker up earns its stake without any, and asks a faucet by itself if
--faucet names one.

With -o json: {"address","amount_uzen","hash","height"}.`,
		Example: `  starling account request --home mine --faucet http://203.0.113.7:26680
  starling account request starling1qx... --faucet http://203.0.113.7:26680 -o json`,
		Args: mostOne("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if url == "" {
				return usage.Error(cmd, errors.New("--faucet is needed: the operators of a test network name one"))
			}
			address, err := receiver(cmd, folder, args)
			if err != nil {
				return err
			}
			g, err := faucet.Ask(cmd.Context(), url, address)
			if err != nil {
				return refused(url, err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(g, g.Hash))
			}
			fmt.Printf("%s got %s ZEN in block %d\n", g.Address, terminal.Zen(g.Uzen), g.Height)
			return nil
		},
	}
	cmd.Flags().StringVar(&folder, "home", "", "folder of the key, in place of an address")
	cmd.Flags().StringVar(&url, "faucet", "", "URL of the faucet")
	return cmd
}

// receiver is the address of an argument, or of the key of a folder. No network is asked.
func receiver(cmd *cobra.Command, folder string, args []string) (string, error) {
	switch {
	case len(args) == 1:
		return args[0], target.WantAddress(args[0])
	case folder == "":
		return "", usage.Error(cmd, errors.New("an address or --home is needed"))
	}
	h, err := home.Read(folder)
	if err != nil {
		return "", cause.Home(err)
	}
	return h.Account().Address(), nil
}

// refused explains a faucet that gives nothing.
func refused(url string, err error) error {
	r, ok := errors.AsType[*faucet.Refused](err)
	switch {
	case !ok:
		return terminal.WithExit(&terminal.Problem{Code: "FAUCET_UNREACHABLE", What: "cannot ask the faucet at " + url,
			Why: err.Error(), Fix: "see whether --faucet is right; a worker needs no coins to begin"}, terminal.ExitUnreachable)
	case r.Wait > 0:
		return terminal.WithExit(&terminal.Problem{Code: r.Code, What: "the faucet gives nothing now", Why: r.Text,
			Fix: "ask again in " + terminal.Seconds(r.Wait.Seconds())}, terminal.ExitConflict)
	}
	return terminal.WithExit(&terminal.Problem{Code: r.Code, What: "the faucet gives nothing", Why: r.Text,
		Fix: "see whether " + url + " is a faucet, and ask its operator"}, terminal.ExitConflict)
}
