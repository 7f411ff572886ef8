package web

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dashboard"
)

// Gateway is starling gateway.
func Gateway(*terminal.Console) *cobra.Command {
	o := dashboard.WebOptions{NoPages: true}
	var l training
	cmd := &cobra.Command{
		Use:   "gateway [DIR]",
		Short: "Order the jobs of programs on a network",
		Long: `Serve the API without pages, as REST and as gRPC at one address, and order the jobs that programs submit on
a network: those of the Python client, of gRPC, of HTTP, and of OpenAI's fine-tuning. An account pays for them.
--jobs are ordered at a time; others wait, in their order, until the account has their budgets. Models are delivered to
a folder (out, unless another is given), a run in each folder below it, and can be asked at the same address.

A gateway that is started again over the same folder continues its jobs: none is lost, and none is ordered twice. A
program sends a key with a job, and gets the same job when it sends both again.

With --push the model of every finished job is copied to a store, by the credentials in the environment of the gateway
(starling model push --help lists them). A job that is submitted names no store itself.

With --loops the gateway serves training loops that a program leads step by step, too, below /api/v1, and the network
takes the steps of models that begin as the one in that folder: as starling model tune with --network does. The run of
a model costs --loop-max-cost at most, which counts against the limit of the token that asks for its first step.

The gateway answers this machine alone. Beyond it, tokens are needed: --token-file names a file that only its owner can
read, with a token a line and its scopes, read or read,submit, and perhaps the most that its jobs may cost together
in each coin, such as limit=25 or limit=25,10usdc. Without a token every user of this machine can order jobs that
the account pays.
starling web does the same with pages. docs/api.md has the API.`,
		Example: `  starling gateway --network http://127.0.0.1:26601 --home net/consumer
  starling gateway out --network http://127.0.0.1:26601 --home net/consumer --data data --token-file tokens
  starling gateway --network http://127.0.0.1:26601 --home net/consumer --listen 0.0.0.0:7300 --token-file tokens \
    --host train.example.org`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Network == "" || o.Home == "" {
				return usage.Error(cmd, errors.New("--network and --home are needed: the HTTP interface of a validator, such as "+
					"http://127.0.0.1:26601, and the folder of the account that pays"))
			}
			if err := together(cmd, o, false); err != nil {
				return err
			}
			if err := l.into(cmd, &o, args); err != nil {
				return err
			}
			o.Opened = func(url string) { fmt.Fprintf(os.Stderr, "gateway: %s\n", url) }
			return serve(cmd.Context(), args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Network, "network", "", "HTTP interface of a validator of the network that jobs are ordered on")
	f.StringVar(&o.Home, "home", "", "folder of the account that orders jobs, and pays for them")
	f.StringSliceVar(&o.Blobs, "blob-listen", nil, "multiaddrs at which workers fetch jobs (default: any port of the "+
		"loopback)")
	f.IntVar(&o.Jobs, "jobs", defaultJobs, "jobs that are ordered at a time; others wait")
	access(f, &o)
	l.define(cmd)
	return cmd
}
