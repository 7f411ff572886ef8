package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/faucet"
	"github.com/starling-network/starling/protocol/coin"
)

// fileFaucet is where a faucet keeps what it gave, in the folder of its account.
const fileFaucet = "faucet.jsonl"

func faucetCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var listen, amount, total string
	var perHost int
	cmd := &cobra.Command{
		Use:   "faucet --home DIR --network URL",
		Short: "Give coins of an account to newcomers of a test network",
		Long: `Serve a faucet over HTTP until Ctrl-C: a client that posts {"address": "starling1..."} gets coins of the
account of the folder, once a day for an address, and within limits a day for a host and for all. The gifts are
in faucet.jsonl in the folder, so a restart forgets no limit. It is for test networks: a person with ten addresses on
ten hosts gets ten gifts, up to --daily-zen. Behind a proxy every newcomer has the host of the proxy.

Answers: 200 {"address","amount_uzen","hash","height"}; 400 ADDRESS_INVALID, 429 FAUCET_LIMIT with Retry-After, 502
FAUCET_FAILED, each {"code","error"}. GET / gives the limits.`,
		Example: `  starling network faucet --home net/consumer --network http://127.0.0.1:26601
  starling network faucet --home net/consumer --listen 0.0.0.0:26680 --zen 150 --daily-zen 3000
  curl -d '{"address": "starling1qx..."}' http://127.0.0.1:26680/`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			one, err := target.WantAmount(cmd, amount)
			if err != nil {
				return err
			}
			all, err := target.WantAmount(cmd, total)
			if err != nil {
				return err
			}
			limits := faucet.Limits{Amount: one, PerHost: perHost, Total: all}
			return t.Act(cmd, "the folder of the account that gives", func(ctx context.Context, cl *client.Client) error {
				return serveFaucet(ctx, cl, filepath.Join(t.Home, fileFaucet), listen, limits)
			})
		},
	}
	t.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:26680", "host:port to serve at")
	f.StringVar(&amount, "zen", "150", "what an address gets, once a day: enough for the stake of a worker")
	f.StringVar(&total, "daily-zen", "15000", "the most that is given within a day")
	f.IntVar(&perHost, "daily-host", 5, "how often a host gets coins within a day")
	return cmd
}

func serveFaucet(ctx context.Context, cl *client.Client, file, listen string, limits faucet.Limits) (err error) {
	give := func(ctx context.Context, to string, uzen uint64) (string, int64, error) {
		r, err := cl.Coins.Send(ctx, to, coin.Coin{}, uzen, "faucet")
		return r.Hash, r.Height, err
	}
	f, err := faucet.Open(file, limits, give, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l, err := terminal.Listen(ctx, listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "the faucet gives %s ZEN of %s at http://%s\n", terminal.Zen(limits.Amount), cl.Address(),
		l.Addr())
	server := &http.Server{Handler: f, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
