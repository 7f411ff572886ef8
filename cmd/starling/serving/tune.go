package serving

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/loops"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/tinker"
)

// Tune is starling model tune.
func Tune(c *terminal.Console) *cobra.Command {
	var listen, tokenFile, name, network, dir string
	var hosts, blobs []string
	var l loops.Flags
	cmd := &cobra.Command{
		Use:   "tune MODEL",
		Short: "Serve steps of training over the Tinker API",
		Long: `Serve the model in a folder as the base of training loops that a program leads over the Tinker API:
create_model, forward, forward_backward with the losses cross_entropy, importance_sampling and ppo, optim_step, sample,
save_weights and load_weights, until interrupted. A loop trains a LoRA adapter or all weights. The work is done on this
machine, one request after the other, and no network verifies it; the same requests give the same weights on every
machine.

With --network and --home, the folder of an account with coins, the first optim_step of a model orders a run on that
network, and its workers compute each step with the passes before it, audited and paid as the units of a job are. The
result of forward_backward comes with its optim_step, some blocks later. The other requests are computed here, by the
checkpoint of the run. --context is the length of the sequences of a step (default with --network: 256), which has
--rows of them, whatever is sent. A run ends when its model is unloaded, or is --idle. A server that is started again
with the same account and base model continues the runs of the one before it, and answers the requests that it did not.

Weights are saved as folders in Hugging Face form below --out, which starling model generate reads; when they
take as much as --saved says, further ones are refused.

The server listens on the loopback. Beyond it, --token-file is needed: its first line is the token that every request
must carry as "Authorization: Bearer TOKEN" or "X-API-Key: TOKEN". docs/serving.md describes the interface.`,
		Example: `  starling model tune out/quickstart
  starling model tune out/base --out tuned --listen 127.0.0.1:7320 --models 2
  starling model tune out/base --listen 0.0.0.0:7320 --token-file token
  starling model tune out/base --network http://127.0.0.1:26601 --home net/consumer --rows 8 --context 128`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) (failed error) {
			config, err := tuneConfig(cmd, listen, tokenFile, hosts)
			if err != nil {
				return err
			}
			if err := onNetwork(cmd, &l, network, dir); err != nil {
				return err
			}
			service, err := l.Service(cmd, args[0], name, network != "")
			if err != nil {
				return err
			}
			var a *account.Account
			if network != "" {
				leave := func() error { return nil }
				if a, leave, err = account.Alone(dir, network, blobs); err != nil {
					return cause.Explain(err)
				}
				defer func() { failed = errors.Join(failed, leave()) }()
			}
			service.Orders.Ledger = spending.Shared{Lock: &sync.Mutex{}, By: spending.ByToken{}}
			server, t, err := service.Open(cmd.Context(), a, config)
			switch {
			case errors.Is(err, trainer.ErrFolder):
				return terminal.UnreadableModel("train", args[0], err, terminal.AnyModel)
			case err != nil:
				return cause.Explain(err)
			}
			c.NoteIgnored(args[0], t.Ignored())
			at, err := listenAt(listen)
			if err != nil {
				return err
			}
			base := "http://" + at.Addr().String()
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.One(map[string]any{"base_url": base, "base_model": t.Base().Name}, base))
			} else {
				_, err = fmt.Printf("serving  %s  base model %s\n", base, t.Base().Name)
			}
			if err != nil {
				return errors.Join(err, at.Close())
			}
			return openai.Serve(cmd.Context(), at, server)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7320", "address and port; port 0 takes a free one")
	f.StringVar(&tokenFile, "token-file", "", "file with the token that requests must carry")
	f.StringSliceVar(&hosts, "host", nil, "name of the server, besides localhost and addresses")
	f.StringVar(&name, "name", "", "name of the base model (default: that of its folder)")
	f.StringVar(&network, "network", "", "HTTP interface of a validator of the network that takes the steps")
	f.StringVar(&dir, "home", "", "with --network: folder of the account that pays")
	f.StringSliceVar(&blobs, "blob-listen", nil, "multiaddrs at which workers fetch data (default: any port of the "+
		"loopback)")
	l.Define(cmd, "", "tuned")
	return cmd
}

// onNetwork refuses flags that lack --network or --home.
func onNetwork(cmd *cobra.Command, l *loops.Flags, network, dir string) error {
	switch {
	case network != "" && dir == "":
		return usage.Error(cmd, errors.New("--network needs --home, the folder of the account that pays"))
	case network == "" && (dir != "" || cmd.Flags().Changed("blob-listen")):
		return usage.Error(cmd, errors.New("--home and --blob-listen need --network"))
	}
	return l.Check(cmd, network != "", true, "--network")
}

// tuneConfig has the token, which an address beyond the loopback needs.
func tuneConfig(cmd *cobra.Command, listen, tokenFile string, hosts []string) (tinker.Config, error) {
	config := tinker.Config{Hosts: hosts, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	served, err := serveConfig(cmd, listen, tokenFile, hosts)
	if err != nil || served.Token == "" {
		return config, err
	}
	config.Tokens, err = access.ParseTokens(strings.NewReader(served.Token + " " + access.Submit))
	return config, err
}
