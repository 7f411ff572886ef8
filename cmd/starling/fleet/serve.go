package fleet

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/node/rayjobs"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/openai"
)

func serveCommand(c *terminal.Console) *cobra.Command {
	var listen, home, tokenFile string
	var hosts []string
	cmd := &cobra.Command{
		Use:   "serve --home DIR [--listen ADDRESS] [--token-file FILE]",
		Short: "Let tools for Ray clusters start and watch workers of this host",
		Long: `Serve the REST API of Ray Jobs (version 4.0.0 of its description): ray job submit, status, logs, list, stop and
delete, the Python client of Ray Jobs, and whatever else speaks it, start and watch workers of this host.

A job is a process of this program: its entrypoint is starling worker up, starling verifier up or starling fleet up with
flags, without a shell. --home holds the records and logs of jobs, and is the folder that their paths are relative to.
Of the resources that a job reserves, entrypoint_num_cpus becomes --threads, entrypoint_memory --memory, and
entrypoint_num_gpus --device auto. Environments, packages and other resources are refused by name.

Stop drains a worker: it first ends what it owes. Stopped a second time, it ends at once. Ctrl-C stops all jobs.

The server listens on the loopback, where every program of the machine may use it. Beyond it, --token-file is needed: a
line for each token, with its scopes, such as "3f9c...a1 read,submit". A token that may submit acts as this user does.

With -o json: {"url"}.`,
		Example: `  starling fleet serve --home fleet
  RAY_API_SERVER_ADDRESS=http://127.0.0.1:8265 ray job submit --no-wait -- \
      starling worker up --network http://10.0.0.7:26601 --home gpu-0
  starling fleet serve --home fleet --listen 0.0.0.0:8265 --token-file tokens`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := rayjobs.Config{Hosts: hosts, Version: version.Binary()}
			if tokenFile != "" {
				var err error
				if config.Tokens, err = access.ReadTokens(tokenFile); err != nil {
					return usage.Error(cmd, err)
				}
			}
			loopback, err := access.Loopback(listen)
			if err != nil {
				return usage.Error(cmd, fmt.Errorf("--listen: %w", err))
			}
			if !loopback && config.Tokens == nil {
				return usage.Error(cmd, errors.New("beyond the loopback --token-file is needed: everyone who reaches the "+
					"server could start processes"))
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return &terminal.Problem{Code: "LISTEN_FAILED", What: "cannot listen on " + listen, Why: err.Error(),
					Fix: "give another --listen address"}
			}
			self, err := os.Executable()
			if err != nil {
				return errors.Join(err, l.Close())
			}
			h, err := rayjobs.Open(self, home, slog.New(slog.NewTextHandler(os.Stderr, nil)))
			if err != nil {
				return errors.Join(err, l.Close())
			}
			defer h.Close(terminal.Interrupts(cmd.Context()))
			url := "http://" + l.Addr().String()
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.One(map[string]any{"url": url}, url))
			} else {
				_, err = fmt.Printf("serving  %s  for ray job submit --address %s\n", url, url)
			}
			if err != nil {
				return errors.Join(err, l.Close())
			}
			return openai.Serve(cmd.Context(), l, rayjobs.Handler(h, config))
		},
	}
	f := cmd.Flags()
	f.StringVar(&home, "home", "", "folder of the records and logs of jobs")
	f.StringVar(&listen, "listen", "127.0.0.1:8265", "address and port; port 0 takes a free one")
	f.StringVar(&tokenFile, "token-file", "", "file of tokens and their scopes")
	f.StringSliceVar(&hosts, "host", nil, "name of the server, besides localhost and addresses")
	_ = cmd.MarkFlagRequired("home") // it is a flag of the command
	return cmd
}
