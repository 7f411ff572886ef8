package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/fleet/head"
	"github.com/starling-network/starling/node/provider/peers"
)

func headCommand(c *terminal.Console) *cobra.Command {
	var network, listen string
	var private bool
	cmd := &cobra.Command{
		Use:   "head --network URL --listen ADDRESS",
		Short: "Be the way to a network for machines of a local network",
		Long: `Let machines that reach this host alone take part in a network: starling worker up --head http://ADDRESS.
The head passes their questions and transactions to the validators of --network, and makes their connections to peers.
Others reach these machines through relays, which are participants with --relay.

Every host that reaches --listen may use the head. It connects to the validators of --network and to addresses over TCP
at which participants are registered, to no loopback, and to addresses of private networks only with --private. It has
no key: each machine has its own, and an invitation of starling fleet add makes it one of a fleet. Connections between
peers are encrypted by the machine; questions to validators pass the local network and the head as they are. The first
Ctrl-C ends it.

With -o json: {"url"}.`,
		Example: `  starling fleet head --network http://203.0.113.7:26601 --listen 10.0.0.1:7600
  starling worker up --home gpu-0 --enrol machine-1 --head http://10.0.0.1:7600`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if network == "" || listen == "" {
				return usage.Error(cmd, errors.New("--network and --listen are needed"))
			}
			return serveHead(cmd.Context(), c, network, listen, private)
		},
	}
	f := cmd.Flags()
	f.StringVar(&network, "network", "", "HTTP interface of a validator, or of several, separated by commas: the next "+
		"is asked when one is gone")
	f.StringVar(&listen, "listen", "", "host:port on the local network; port 0 takes a free one")
	f.BoolVar(&private, "private", false, "also connect machines to participants at addresses of private networks")
	return cmd
}

func serveHead(ctx context.Context, c *terminal.Console, network, listen string, private bool) error {
	validators, err := endpoint.NewTransport(network)
	if err != nil {
		return cause.Explain(err)
	}
	chain, err := client.Connect(network, wallet.KeyFromSeed([32]byte{})) // it asks, and signs nothing
	if err != nil {
		return cause.Explain(err)
	}
	defer chain.Close()
	l, err := terminal.Listen(ctx, listen)
	if err != nil {
		return err
	}
	h := &head.Head{Validators: validators, At: peers.New(chain.Registry).At, Private: private,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	url := "http://" + l.Addr().String()
	if c.Form.Machine() {
		err = c.Form.Print(os.Stdout, terminal.One(map[string]any{"url": url}, url))
	} else {
		_, err = fmt.Printf("head  %s  for starling worker up --head %s\n", url, url)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	_, sent, received := h.Traffic()
	c.Say(fmt.Sprintf("passed %s to peers and %s from them", terminal.Bytes(uint64(sent)),
		terminal.Bytes(uint64(received))))
	return nil
}
