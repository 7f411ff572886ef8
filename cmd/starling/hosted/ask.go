package hosted

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/hosting/gateway"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/reasoning"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/openai"
)

// asking is the part of the flags that both commands have.
type asking struct {
	target.Target
	budget, local string
	adapters      []string // folders of adapters, with the names of their models
	check         float64  // percent
	private       bool
}

func (o *asking) flags(cmd *cobra.Command) {
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.budget, "budget", "", "the most to lock and spend in all, such as 5 or 5usdc: its coin is that of the "+
		"prices")
	f.Float64Var(&o.check, "check", 5, "percent of the answers that a second provider writes again, drawn in secret")
	f.BoolVar(&o.private, "private", false, "also ask providers at private addresses, as those of a network on this "+
		"machine have")
	f.StringVar(&o.local, "local", "", "folder of the model, which decides conflicts (default: a third provider does)")
	f.StringArrayVar(&o.adapters, "local-adapter", nil, "NAME=DIR: folder of the adapter NAME of the model in --local, "+
		"which decides its conflicts; repeatable")
}

func (o *asking) wants(cmd *cobra.Command) error {
	switch {
	case o.Home == "":
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account that pays"))
	case o.budget == "":
		return usage.Error(cmd, errors.New("--budget is needed, such as 5 or 5usdc"))
	case o.check < 0 || o.check > 100:
		return usage.Error(cmd, errors.New("--check is a percentage, from 0 to 100"))
	case len(o.adapters) > 0 && o.local == "":
		return usage.Error(cmd, errors.New("--local-adapter needs --local: the folder of its base"))
	}
	return target.WantCoins(cmd, o.budget)
}

// open opens the gateway to a model, and, of a whole model, to the adapters that providers host with it, for one
// function.
func (o *asking) open(cmd *cobra.Command, c *terminal.Console, name string, adapters bool,
	do func(ctx context.Context, g *gateway.Several, budget coins.Amount) error) error {
	return o.Act(cmd, "the folder of the account that pays", func(ctx context.Context, cl *client.Client) error {
		m, err := listing.Find(ctx, cl.Hosting, name)
		if err != nil {
			return err
		}
		head, err := cl.Ledger.Head(ctx)
		if err != nil {
			return err
		}
		budget, err := coins.Parse(ctx, cl.Market, o.budget)
		if err != nil {
			return err
		}
		config := gateway.Config{Network: cl.Hosting, Chain: head.ChainID, Account: cl.Address(), Model: m,
			Private: o.private, Denom: budget.Denom, Budget: budget.Grains, CheckPPM: uint32(o.check * 10_000),
			Log: slog.New(slog.DiscardHandler), Height: func(ctx context.Context) (int64, error) {
				head, err := cl.Ledger.Head(ctx)
				return head.Height, err
			}}
		if !c.Quiet {
			config.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		}
		dir := func(m hosting.Model) string {
			return filepath.Join(o.Home, "gateway", strconv.FormatUint(m.ID, 10), strings.ToLower(budget.Name()))
		}
		config.Dir = dir(m)
		if o.local != "" {
			e, err := o.decider(ctx, cl, m)
			if err != nil {
				return err
			}
			defer e.Close()
			config.Local = e
		}
		var over []hosting.Model
		var names map[uint64]string
		if adapters {
			if over, names, err = listing.Adapters(ctx, cl.Hosting, m); err != nil {
				return err
			}
		}
		g, err := gateway.OpenSeveral(ctx, config, over, names, dir)
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, g, budget), g.Close())
	})
}

// decider is the model in a folder of this machine, with the names by which it and its adapters are asked for. The base
// of an adapter has another name than the adapter, so that it decides nothing about that.
func (o *asking) decider(ctx context.Context, cl *client.Client, m hosting.Model) (*serve.Engine, error) {
	if name := m.Name; m.Base != 0 {
		base, err := cl.Hosting.Model(ctx, m.Base)
		if err != nil {
			return nil, err
		}
		if m = base; m.Name == name {
			m.Name = fmt.Sprintf("%s@%d", m.Name, m.ID)
		}
	}
	adapters, err := adaptersOf(o.adapters)
	if err != nil {
		return nil, err
	}
	e, err := serve.Open(o.local, serve.Options{Name: m.Name, Checked: true, Adapters: adapters})
	if err != nil {
		return nil, terminal.UnreadableModel("use", o.local, err, terminal.AnyModel+", and adapters of it")
	}
	return e, nil
}

// adaptersOf reads the values NAME=DIR of a flag.
func adaptersOf(values []string) (list []serve.Adapter, _ error) {
	for _, v := range values {
		a, ok := serve.ParseAdapter(v)
		if !ok {
			return nil, terminal.WithExit(&terminal.Problem{Code: "BAD_ADAPTER", What: "--local-adapter " + v +
				" is not NAME=DIR", Fix: "give the name of the model, and its folder"}, terminal.ExitUsage)
		}
		list = append(list, a)
	}
	return list, nil
}

// Reply is an answer for programs.
type Reply struct {
	Text   string `json:"text"`
	Prompt int    `json:"prompt_tokens"`
	Tokens int    `json:"tokens"`
	Finish string `json:"finish_reason"`
	Coin   string `json:"coin"`
	Cost   string `json:"cost"`
}

func askCommand(c *terminal.Console) *cobra.Command {
	var o asking
	var r openai.Request
	var chat bool
	cmd := &cobra.Command{
		Use:   "ask MODEL PROMPT --budget AMOUNT --home DIR",
		Short: "Ask a hosted model once, and pay for the answer",
		Long: `Continue a prompt with a model that providers host on a network: MODEL is its number or name, as starling model
hosted lists them. The provider is chosen by price and is paid through a channel, which is opened with a part of
--budget and stays open for the next question; starling model gateway --close closes it. If the provider fails, another
one continues. With --chat the prompt is a turn of a conversation.

With -o json: {"text","prompt_tokens","tokens","finish_reason","coin","cost"}.`,
		Example: `  starling model ask quickstart "func " --budget 1 --home net/consumer
  starling model ask 3 "What is a channel?" --chat --budget 0.5usdc --tokens 200 --home net/consumer -o json`,
		Args: usage.Exactly("MODEL", "PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Max < 1 || r.Temperature < 0 || r.Temperature > 2 || r.TopP <= 0 || r.TopP > 1 {
				return usage.Error(cmd, errors.New("--tokens is at least 1, --temperature from 0 to 2, and --top-p above 0 and "+
					"at most 1"))
			}
			if err := o.wants(cmd); err != nil {
				return err
			}
			r.Prompt, r.Likely = args[1], -1
			if chat {
				r.Prompt, r.Messages = "", []openai.Message{{Role: "user", Content: args[1]}}
			}
			return explain(o.open(cmd, c, args[0], false, func(ctx context.Context, g *gateway.Several, in coins.Amount) error {
				return ask(ctx, c, g, r, in)
			}))
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&chat, "chat", false, "the prompt is a turn of a conversation, which the model's chat template renders")
	f.IntVar(&r.Max, "tokens", 128, "most tokens of the answer")
	f.Float64Var(&r.Temperature, "temperature", 0.8, "0 takes the most likely token every time")
	f.Float64Var(&r.TopP, "top-p", 1, "draw among the most likely tokens that have this probability in sum; 1: among all")
	f.Uint64Var(&r.Seed, "seed", 0, "seed of the drawing")
	return cmd
}

func ask(ctx context.Context, c *terminal.Console, g *gateway.Several, r openai.Request, in coins.Amount) error {
	before := g.Counts().Spent
	r.Model = g.Models()[0].Name
	var text strings.Builder
	made, err := g.Generate(ctx, r, func(p openai.Piece) error {
		text.WriteString(p.Text)
		if c.Form.Machine() {
			return nil
		}
		_, err := fmt.Print(p.Text)
		return err
	})
	if err != nil {
		return err
	}
	g.Wait()
	cost := g.Counts().Spent - before
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(Reply{Text: text.String(), Prompt: made.PromptTokens,
			Tokens: made.Tokens, Finish: made.Finish, Coin: in.Name(), Cost: in.Amount(cost)}, text.String()))
	}
	fmt.Println()
	if !c.Quiet {
		fmt.Fprintf(os.Stderr, "%d tokens for %s\n", made.Tokens, in.Text(cost))
	}
	return nil
}

// Spent is the end of a gateway for programs.
type Spent struct {
	gateway.Counts
	Coin      string             `json:"coin"`
	Amount    string             `json:"amount"` // spent in all
	Providers []gateway.Standing `json:"providers"`
}

func gatewayCommand(c *terminal.Console) *cobra.Command {
	var o asking
	var listen string
	var shut bool
	cmd := &cobra.Command{
		Use:   "gateway MODEL --budget AMOUNT --home DIR",
		Short: "Serve a hosted model to local programs over OpenAI's HTTP interface",
		Long: `Answer requests of OpenAI's HTTP interface at --listen with a model that providers host on a network, and pay
them, until interrupted. MODEL is its number or name. The adapters of it that providers host are served, too, each by
its own name: one whose name is taken has @ and its number after it. Providers are chosen by price and measured speed;
each is paid through a channel, and all channels together hold at most --budget. A text whose provider fails is
continued by another: the same seed gives the same text, and the reader gets each token once.

Drawn answers, --check percent of them, are written again by a second provider. Of two that differ, the model in
--local or a third provider decides which is wrong; that provider is not asked any more, and the folder
gateway/MODEL/COIN/conflicts in --home has the record with both receipts.

Channels stay open for the next start. --close closes them, and ends; the rest of each returns after the blocks of
closing. The gateway listens on the loopback only: programs that reach it spend the budget.

With -o json, at the end: {"answers","failovers","checked","conflicts","spent","coin","amount","providers"}.`,
		Example: `  starling model gateway quickstart --budget 5 --home net/consumer
  starling model gateway 3 --budget 5usdc --check 10 --listen 127.0.0.1:8099 --home net/consumer
  starling model gateway quickstart --budget 5 --local out/quickstart --local-adapter tuned=out/tuned/adapter \
    --home net/consumer
  starling model gateway 3 --budget 5usdc --home net/consumer --close`,
		Args: usage.Exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.wants(cmd); err != nil {
				return err
			}
			if loopback, err := access.Loopback(listen); err != nil || !loopback {
				return usage.Error(cmd, errors.Join(fmt.Errorf("--listen %s: it is an address of the loopback", listen), err))
			}
			return explain(o.open(cmd, c, args[0], true, func(ctx context.Context, g *gateway.Several, in coins.Amount) error {
				if shut {
					closed, err := g.CloseChannels(ctx)
					if !c.Quiet {
						fmt.Fprintf(os.Stderr, "%d channels close\n", closed)
					}
					return err
				}
				return errors.Join(answerLocally(ctx, c, g, listen), report(c, g, in))
			}))
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7600", "host:port at which requests are answered")
	f.BoolVar(&shut, "close", false, "close all channels, and end")
	return cmd
}

func answerLocally(ctx context.Context, c *terminal.Console, g *gateway.Several, listen string) error {
	l, err := terminal.Listen(ctx, listen)
	if err != nil {
		return err
	}
	if !c.Quiet {
		var names []string
		for _, m := range g.Models() {
			names = append(names, m.Name)
		}
		fmt.Fprintf(os.Stderr, "%s is served at http://%s/v1\n", strings.Join(names, ", "), l.Addr())
	}
	return openai.Serve(ctx, l, openai.New(reasoning.NewVotes(g), openai.Config{Watch: true, Strategies: true}))
}

// report prints the end of a gateway.
func report(c *terminal.Console, g *gateway.Several, in coins.Amount) error {
	g.Wait()
	s := Spent{Counts: g.Counts(), Coin: in.Name(), Amount: in.Amount(g.Counts().Spent), Providers: g.Standings()}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(s, s.Amount))
	}
	fmt.Printf("answers   %d, %d continued by another provider\nchecked   %d, %d conflicts\nspent     %s\n", s.Answers,
		s.Failovers, s.Checked, s.Conflicts, in.Text(s.Spent))
	for _, p := range s.Providers {
		fmt.Println(p)
	}
	return nil
}
