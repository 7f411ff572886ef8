// Package serving is starling model serve and starling model tune: servers of a model in a folder, over HTTP.
package serving

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/layered"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/reasoning"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/hub"
	"github.com/starling-network/starling/web/openai"
)

// serveHelp is the help of starling model serve.
const serveHelp = `Serve the model in a folder by /v1/models, /v1/completions and /v1/chat/completions of OpenAI's HTTP
interface, until interrupted. Texts are written together, up to --texts at once; further ones wait, and when --waiting
wait, more are refused with 429. The same request with the same seed gives the same text, whatever else is computed with
it. Each --adapter, a folder that PEFT wrote or the adapter/ of a run, is a model of its own over the same weights.
Loaders of the Hugging Face hub pull the files of the model from the same address as starling/NAME, of a mixture those
of each expert as starling/NAME-EXPERT.

The server listens on the loopback. Beyond it, --token-file is needed: its first line is the token that every request
must carry as "Authorization: Bearer TOKEN".

Pages in a browser may ask it if --allow-origin names their origin, or is "*". GET /health says whether it is well,
GET /metrics what it counts, for Prometheus; every request is a line of the log, by the name that its answer has as
X-Request-Id, unless --no-log is given.

A conversation is rendered by the model's chat template, or as lines "User: " and "Assistant: "; see docs/serving.md.

MODEL may be the front of a model in stages, which starling model split makes: its layers are computed by the holders
that --holder names, and nothing of it is pulled. A holder that fails in the middle of a text is replaced by another of
its stage, with the same bits. --recompute percent of the texts are computed again by a second holder of each stage.
With --skip-missing, texts continue without a stage that no holder answers for, if the model was trained so
(parallel.skip). Their answers name it: "starling":{"left_stages":[2]} of the choice, the header or trailer
X-Starling-Left-Stages, and a system_fingerprint of their own.

A request may ask for a vote over several answers, a search over steps, or tools, under the key "starling". A tool is a
function in Starlark: --tool add=tools.star has the model call add(arguments) of the file tools.star, which gets a dict
and returns a string or a number.`

// Serve is starling model serve.
func Serve(c *terminal.Console) *cobra.Command {
	var o serve.Options
	var listen, tokenFile string
	var adapters, hosts, origins, tools []string
	var memory, adapterMemory int
	var quiet bool
	var front layered.Front
	var home string
	cmd := &cobra.Command{
		Use:   "serve MODEL",
		Short: "Serve a model over OpenAI's HTTP interface",
		Long:  serveHelp,
		Example: `  starling model serve out/quickstart
  starling model serve out/base --adapter tuned=out/tuned/adapter --listen 127.0.0.1:8000
  starling model serve out/quickstart --tool add=examples/tools/add.star
  starling model serve parts/front --home front --holder /dns4/a.example/tcp/7700/p2p/12D3KooW... --skip-missing
  starling model serve out/base --listen 0.0.0.0:8000 --token-file token`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := serveConfig(cmd, listen, tokenFile, hosts)
			if err != nil {
				return err
			}
			for _, text := range adapters {
				a, ok := serve.ParseAdapter(text)
				if !ok {
					return usage.Error(cmd, fmt.Errorf("--adapter %s is not NAME=DIR", text))
				}
				o.Adapters = append(o.Adapters, a)
			}
			callable, err := toolsOf(cmd, tools)
			if err != nil {
				return err
			}
			if adapterMemory < 1 || memory < 1 || o.Texts < 1 || o.Waiting < 1 || o.Threads < 1 {
				return usage.Error(cmd, errors.New("--kv-memory, --adapter-memory, --texts, --waiting and --threads must be "+
					"at least 1"))
			}
			o.Memory, o.AdapterMemory = int64(memory)<<20, int64(adapterMemory)<<20
			linked, err := front.Open(cmd, args[0], home)
			if err != nil {
				return err
			}
			if linked != nil {
				defer func() { _ = linked.Close() }()
				o.Stages = linked.Stages(cmd.Context())
			}
			e, err := serve.Open(args[0], o)
			if missing := layered.Unreached(err); missing != nil {
				return missing
			}
			if err != nil {
				return terminal.UnreadableModel("serve", args[0], err, terminal.AnyModel+", and adapters of it")
			}
			defer e.Close()
			m, err := reasoning.New(e, callable...)
			if err != nil {
				return usage.Error(cmd, fmt.Errorf("--tool: %w", err))
			}
			c.NoteIgnored(args[0], e.Ignored())
			pull, err := hub.New(e.Folders())
			if err != nil {
				return err
			}
			defer pull.Close()
			config.Rest, config.Watch, config.Health, config.Origins = pull, true, e.Health, origins
			config.Strategies = true
			if !quiet {
				config.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			}
			l, err := listenAt(listen)
			if err != nil {
				return err
			}
			if err := announce(c, l, e.Models()); err != nil {
				return errors.Join(err, l.Close())
			}
			return openai.Serve(cmd.Context(), l, openai.New(m, config))
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:8088", "address and port; port 0 takes a free one")
	f.StringVar(&tokenFile, "token-file", "", "file with the token that requests must carry")
	f.StringSliceVar(&hosts, "host", nil, "name of the server in browsers, besides localhost and addresses")
	f.StringSliceVar(&origins, "allow-origin", nil, "origin whose pages may ask from a browser, such as "+
		"https://chat.example, or * (repeatable)")
	f.BoolVar(&quiet, "no-log", false, "log no requests")
	f.StringVar(&o.Name, "name", "", "name of the model (default: that of its folder)")
	f.StringArrayVar(&adapters, "adapter", nil, "NAME=DIR: serve an adapter of the model as the model NAME")
	f.StringArrayVar(&tools, "tool", nil,
		"NAME=FILE: a function in Starlark that requests may let the model call (repeatable)")
	f.IntVar(&o.Threads, "threads", kernel.Cores, "number of threads")
	f.IntVar(&o.Texts, "texts", 16, "texts that are written at once")
	f.IntVar(&o.Waiting, "waiting", 64, "texts that may wait in addition")
	f.StringVar(&home, "home", "", "folder of the key of the front of a model in stages, which holders know it by")
	front.Flags(f)
	front.SkipFlag(f)
	f.IntVar(&memory, "kv-memory", 1024, "MiB that the keys and values of all texts may take")
	f.IntVar(&adapterMemory, "adapter-memory", 1024, "MiB that the adapters in memory may take; at least one is")
	return cmd
}

// listenAt listens at the address of the flag --listen.
func listenAt(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &terminal.Problem{Code: "LISTEN_FAILED", What: "cannot listen on " + address, Why: err.Error(),
			Fix: "give another --listen address"}
	}
	return l, nil
}

// announce tells where the models are served.
func announce(c *terminal.Console, l net.Listener, models []openai.Info) error {
	base := "http://" + l.Addr().String() + "/v1"
	if !c.Form.Machine() {
		_, err := fmt.Println("serving  " + base)
		return err
	}
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	return c.Form.Print(os.Stdout, terminal.One(map[string]any{"base_url": base, "models": names}, base))
}

// toolsOf reads the tools of flags.
func toolsOf(cmd *cobra.Command, flags []string) (tools []reasoning.Tool, err error) {
	for _, f := range flags {
		name, path, ok := strings.Cut(f, "=")
		if !ok || path == "" {
			return nil, usage.Error(cmd, fmt.Errorf("--tool %s is not NAME=FILE", f))
		}
		t, err := reasoning.OpenTool(name, path)
		if err != nil {
			return nil, &terminal.Problem{Code: "TOOL_INVALID", What: "cannot use the tool " + name, Why: err.Error(),
				Fix: "give a file in Starlark that defines the function " + name + " with one parameter"}
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// serveConfig reads the token, which an address beyond the loopback needs.
func serveConfig(cmd *cobra.Command, listen, tokenFile string, hosts []string) (openai.Config, error) {
	config := openai.Config{Hosts: hosts}
	if tokenFile != "" {
		text, err := os.ReadFile(tokenFile)
		if err != nil {
			return config, terminal.WithExit(&terminal.Problem{Code: "TOKEN_UNREADABLE", What: "cannot read the token",
				Why: err.Error(), Fix: "give a file that holds it in its first line"}, terminal.ExitAuth)
		}
		config.Token, _, _ = strings.Cut(string(text), "\n")
		if config.Token = strings.TrimSpace(config.Token); len(config.Token) < 16 {
			return config, terminal.WithExit(&terminal.Problem{Code: "TOKEN_WEAK",
				What: "the token of " + tokenFile + " has fewer than 16 characters",
				Fix:  "make one, such as by `openssl rand -hex 24 > " + tokenFile + "`"}, terminal.ExitAuth)
		}
		return config, nil
	}
	loopback, err := access.Loopback(listen)
	if err != nil {
		return config, usage.Error(cmd, fmt.Errorf("--listen: %w", err))
	}
	if !loopback {
		return config, terminal.WithExit(&terminal.Problem{Code: "TOKEN_NEEDED", What: "others can reach " + listen,
			Why: "without a token, anyone who reaches it may use the model",
			Fix: "listen on 127.0.0.1, or give --token-file"}, terminal.ExitAuth)
	}
	return config, nil
}
