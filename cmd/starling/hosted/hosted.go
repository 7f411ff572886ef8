// Package hosted has the commands about models that are hosted on a network: it hosts them, lists them, and asks them.
// The rules are those of protocol/hosting, and both sides are in node/hosting.
package hosted

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/hosting/gateway"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/hosting/provider"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
)

// Commands are those of starling model about hosted models.
func Commands(c *terminal.Console) []*cobra.Command {
	return []*cobra.Command{hostCommand(c), hostedCommand(c), askCommand(c), gatewayCommand(c)}
}

// Listed is the place of a provider for programs; without a provider, a model that no provider hosts.
type Listed struct {
	Model    uint64 `json:"model"`
	Name     string `json:"name"`
	Owner    string `json:"owner"`
	Base     uint64 `json:"base,omitempty"` // number of the model that it is an adapter of
	Job      string `json:"job,omitempty"`
	Part     uint32 `json:"part_ppm"` // of the revenue, for the share holders of the job or the owner
	Licence  string `json:"licence,omitempty"`
	Files    string `json:"files"`   // digest
	Weights  string `json:"weights"` // root
	Provider string `json:"provider,omitempty"`
	URL      string `json:"url,omitempty"`
	Coin     string `json:"coin,omitempty"`
	Input    string `json:"input,omitempty"`  // coins for a million tokens of prompts
	Output   string `json:"output,omitempty"` // coins for a million tokens of answers
	Bond     string `json:"bond,omitempty"`   // ZEN
	Channels uint32 `json:"channels"`
	Status   string `json:"status"` // open, left, lied or none
}

func status(p hosting.Place) string {
	switch {
	case p.Lied:
		return "lied"
	case p.Left:
		return "left"
	}
	return "open"
}

func hostedCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "hosted", "List the models that are hosted on a network, with providers and prices",
		`List the models that are registered on a network, the latest first, with the providers that host them. INPUT and
OUTPUT are the prices of a million tokens of prompts and of answers. A provider that left, or was shown to lie, takes no
new channels. An adapter is a model of its own, and has the number of its BASE.

With -o json: {"hosted":[{"model","name","owner","base","job","part_ppm","licence","files","weights","provider","url",`+
			`"coin","input","output","bond","channels","status"}]}.`,
		`  starling model hosted --network http://127.0.0.1:26601`, "hosted",
		func(ctx context.Context, t *target.Target) ([]Listed, error) { return list(ctx, t.Network) },
		func(l Listed) string { return fmt.Sprint(l.Model) },
		[]string{"MODEL", "NAME", "BASE", "INPUT", "OUTPUT", "STATUS", "PROVIDER", "+URL", "+BOND", "+JOB", "+LICENCE",
			"+OWNER"},
		func(l Listed) []any {
			input, output := l.Input, l.Output
			if l.Coin != "" {
				input, output = input+" "+l.Coin, output+" "+l.Coin
			}
			base := ""
			if l.Base > 0 {
				base = fmt.Sprint(l.Base)
			}
			return []any{l.Model, l.Name, base, input, output, l.Status, l.Provider, l.URL, l.Bond, l.Job, l.Licence, l.Owner}
		})
}

func list(ctx context.Context, network string) ([]Listed, error) {
	return inspect.Query(ctx, network, func(ctx context.Context, cl *client.Client) ([]Listed, error) {
		byDenom, err := cl.Market.ByDenom(ctx)
		if err != nil {
			return nil, err
		}
		models, err := cl.Hosting.Models(ctx)
		if err != nil {
			return nil, err
		}
		places, err := cl.Hosting.Places(ctx, 0)
		if err != nil {
			return nil, err
		}
		all := []Listed{}
		for _, m := range models {
			about := Listed{Model: m.ID, Name: m.Name, Owner: m.Owner, Base: m.Base, Job: m.Job, Part: m.PartPPM,
				Licence: m.Licence, Files: m.Files.String(), Weights: m.Weights.String(), Status: "none"}
			before := len(all)
			for _, p := range places {
				if p.Model != m.ID {
					continue
				}
				l, in := about, byDenom[p.Prices.Denom]
				l.Provider, l.URL, l.Coin, l.Channels, l.Status = p.Provider, p.URL, in.Name(), p.Channels, status(p)
				l.Input, l.Output, l.Bond = in.Amount(p.Prices.Input), in.Amount(p.Prices.Output), coin.Coin{}.Amount(p.Held())
				all = append(all, l)
			}
			if len(all) == before {
				all = append(all, about)
			}
		}
		return all, nil
	})
}

// explain explains the errors of node/hosting.
func explain(err error) error {
	problem := func(code, fix string, exit int) error {
		return terminal.WithExit(&terminal.Problem{Code: code, What: err.Error(), Fix: fix}, exit)
	}
	if told, ok := errors.AsType[*gateway.Refused](err); ok {
		exit := map[string]int{"budget_spent": terminal.ExitFunds, "no_provider": terminal.ExitNoCapacity,
			"providers_failed": terminal.ExitUnreachable, "providers_disagree": terminal.ExitVerification}[told.Code]
		fix := map[string]string{"budget_spent": "give a larger --budget", "no_provider": "see starling model hosted",
			"providers_failed": "try again later", "providers_disagree": "ask again"}[told.Code]
		if exit == 0 {
			exit, fix = terminal.ExitUsage, "correct the request"
		}
		return terminal.WithExit(&terminal.Problem{Code: "HOSTING_REFUSED", What: told.Message, Why: told.Code, Fix: fix,
			Retry: told.Status >= 500}, exit)
	}
	switch {
	case errors.Is(err, provider.ErrTwoCoins):
		return problem("TWO_COINS", "give both in one coin", terminal.ExitUsage)
	case errors.Is(err, listing.ErrModel), errors.Is(err, query.ErrNotFound):
		return problem("NO_HOSTED_MODEL", "give the number of one: starling model hosted lists them", terminal.ExitNotFound)
	case errors.Is(err, listing.ErrMany):
		return problem("AMBIGUOUS_MODEL", "give the number of the model", terminal.ExitUsage)
	case errors.Is(err, listing.ErrFolder):
		return problem("NO_MODEL", "name a folder with the safetensors of a model, such as the output folder of a finished "+
			"run", terminal.ExitNotFound)
	case errors.Is(err, listing.ErrOther):
		return problem("OTHER_MODEL", "host the files of the model, or register yours without --model", terminal.ExitConflict)
	}
	return err
}
