// Package web is starling web, and starling gateway, which is the same without pages: they start the server of
// node/server as their flags configure it.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-network/starling/client/job/stores"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/cmd/starling/version"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server"
	"github.com/starling-network/starling/node/trainer"
)

// Command is starling web.
func Command(c *terminal.Console) *cobra.Command {
	var o dashboard.WebOptions
	var readOnly, asChild bool
	var l training
	cmd := &cobra.Command{
		Use:   "web [DIR]",
		Short: "Show runs and networks in a browser, and to programs",
		Long: `Serve the dashboard and the API, as REST and as gRPC at one address: the runs and simulations below a
folder (out, unless another is given), finished or being written, or the one run that the folder is; and,
with --network, the network of a validator. Nothing is fetched from anywhere else. Clients of gRPC connect
without TLS, and may ask by reflection what there is.

Jobs that are submitted to a folder of runs (POST /v1/jobs) are trained here, one job after another, each in a folder of
its own; job files name their data below the folder of --data, and nothing else. --read-only shows, and trains
nothing. A job that the end of the server stopped continues when it is submitted again with the same key. Clients of
OpenAI's interface upload files of examples, tune models with them and ask the models at the same address, under /v1.

With --network and --home, the folder of an account with coins, jobs are ordered on that network instead, --jobs at a
time, and the account pays for them. A job waits while the account has not its budget. A server that is started
again over the same folder continues its jobs: none is lost, and none is ordered twice.

With --loops the server serves training loops that a program leads step by step, too, below /api/v1, as starling model
tune does: on this machine, or with --home on the network.

With --push the model of every finished job is copied to a store, by the credentials in the environment of the server
(starling model push --help lists them). A job that is submitted names no store itself.

The server answers this machine alone. Beyond it, tokens are needed: --token-file names a file that only its owner can
read, with a token a line and its scopes, read or read,submit, and perhaps the most that its jobs may cost together
in each coin, such as limit=25 or limit=25,10usdc. Without a token every user of this machine can order jobs that
the account pays.
docs/api.md has the API, docs/dashboard.md the pages.`,
		Example: `  starling web
  starling web out/quickstart
  starling web out --network http://127.0.0.1:26601
  starling web out --network http://127.0.0.1:26601 --home net/consumer --token-file tokens
  starling web out --listen 0.0.0.0:7300 --token-file tokens --host train.example.org`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if readOnly {
				o.Data = ""
			}
			if err := together(cmd, o, readOnly); err != nil {
				return err
			}
			if err := l.into(cmd, &o, args); err != nil {
				return err
			}
			o.Opened = func(url string) { fmt.Fprintf(os.Stderr, "dashboard: %s\n", url) }
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			if asChild {
				go func() {
					_, _ = io.Copy(io.Discard, os.Stdin) // until it ends, or breaks
					cancel()
				}()
			}
			return serve(ctx, args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Network, "network", "", "HTTP interface of a validator, to show its network; with --home jobs are "+
		"ordered there")
	f.StringVar(&o.Home, "home", "", "with --network: folder of the account that orders jobs, and pays for them")
	f.StringSliceVar(&o.Blobs, "blob-listen", nil, "with --home: multiaddrs at which workers fetch jobs (default: any "+
		"port of the loopback)")
	f.IntVar(&o.Jobs, "jobs", defaultJobs, "with --home: jobs that are ordered at a time; others wait")
	f.BoolVar(&readOnly, "read-only", false, "train nothing that is submitted")
	f.BoolVar(&asChild, "until-stdin-ends", false, "end when standard input does: for a program that starts the server")
	access(f, &o)
	l.define(cmd)
	return cmd
}

// access defines the flags that say where a server answers, to whom, about which data, and where models are copied to.
func access(f *pflag.FlagSet, o *dashboard.WebOptions) {
	f.StringVar(&o.Listen, "listen", dashboard.DefaultWeb, "host:port to answer at; a free port if this one is taken")
	f.StringVar(&o.Data, "data", ".", "folder of the data that submitted jobs may name")
	f.StringVar(&o.Push, "push", "", "store that gets a copy of the model of every submitted job, below the name of its "+
		"run: s3://BUCKET/PREFIX or hf:OWNER, as of starling model push")
	f.StringVar(&o.Tokens, "token-file", "", "file of bearer tokens; needed beyond the loopback")
	f.StringSliceVar(&o.Hosts, "host", nil, "name by which the server is reached, besides addresses and the loopback's "+
		"(repeatable)")
}

// oneFolder allows the folder of the runs, or nothing.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage.Error(cmd, fmt.Errorf("%d arguments given, wanted at most one folder", len(args)))
	}
	return nil
}

// folderOf is the folder of the arguments, or out.
func folderOf(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "out"
}

// serve runs a server over the folder of the arguments, or out.
func serve(ctx context.Context, args []string, o dashboard.WebOptions) error {
	dir := folderOf(args)
	if err := terminal.CheckListen("--listen", o.Listen, dashboard.DefaultWeb); err != nil {
		return err
	}
	o.Version = version.Binary()
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Say = func(text string) { fmt.Fprintln(os.Stderr, text) }
	err := server.Serve(ctx, dir, o)
	if errors.Is(err, trainer.ErrFolder) {
		return terminal.UnreadableModel("train", o.Loops.Model, err, terminal.AnyModel)
	}
	return webError(ctx, err)
}

// defaultJobs is how many jobs are ordered on a network at a time.
const defaultJobs = 8

// together checks the flags that go together.
func together(cmd *cobra.Command, o dashboard.WebOptions, readOnly bool) error {
	switch {
	case o.Home != "" && o.Network == "":
		return usage.Error(cmd, errors.New("--network is needed with --home: the HTTP interface of a validator, such as "+
			"http://127.0.0.1:26601"))
	case o.Home != "" && readOnly:
		return usage.Error(cmd, errors.New("--home and --read-only are given: an account orders jobs, and --read-only takes "+
			"none"))
	case o.Home == "" && (cmd.Flags().Changed("blob-listen") || cmd.Flags().Changed("jobs")):
		return usage.Error(cmd, errors.New("--blob-listen and --jobs are for jobs that are ordered with --home"))
	case o.Push != "" && (readOnly || !stores.Push{To: o.Push + "/run"}.Known()):
		return usage.Error(cmd, fmt.Errorf("--push %s: give s3://BUCKET/PREFIX or hf:OWNER, and not --read-only", o.Push))
	case o.Jobs < 1 || o.Jobs > maxJobs:
		return usage.Error(cmd, fmt.Errorf("--jobs %d: give 1 to %d", o.Jobs, maxJobs))
	}
	return nil
}

// maxJobs bounds --jobs: each job keeps its program and its held-out data in memory.
const maxJobs = 64

// webError gives the errors of a server their exit codes.
func webError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, runs.ErrNoRuns):
		return terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: err.Error(),
			Fix: "give a folder of runs, such as the one that starling train writes to, or make one (mkdir) for jobs that " +
				"are submitted"}, terminal.ExitNotFound)
	case errors.Is(err, dashboard.ErrOpenToAll):
		return terminal.WithExit(&terminal.Problem{Code: "WEB_NEEDS_TOKENS", What: err.Error(),
			Fix: "give --token-file, or listen on 127.0.0.1"}, terminal.ExitAuth)
	case ctx.Err() != nil:
		return nil
	}
	if err = cause.Explain(err); err == nil || terminal.Explained(err) {
		return err
	}
	return &terminal.Problem{Code: "WEB_FAILED", What: "the server cannot continue", Why: err.Error(),
		Fix: "check --listen and --token-file; `starling web --help` says what they are"}
}
