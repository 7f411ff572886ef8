package dashboard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/validators"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/web/health"
)

// NetworkPeers are the processes that a validator is connected to.
func NetworkPeers(ctx context.Context, network string) ([]validators.Peer, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Validators.Peers(ctx)
}

// NetworkHealth looks at a network through one of its validators: the fields that a server reports, plus working
// members, jailed validators, and whether the network's books are balanced.
func NetworkHealth(ctx context.Context, network string, now time.Time) (*api.Health, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	n, err := (&ChainView{Address: network, Chain: c}).look(ctx)
	if err != nil {
		return nil, err
	}
	books, err := inspect.CheckBooks(ctx, network)
	if err != nil {
		return nil, err
	}
	return networkHealth(n, books, now), nil
}

func networkHealth(n api.Network, books *inspect.Balances, now time.Time) *api.Health {
	h := &api.Health{Status: "ok", Checks: health.CheckBlock(n, now)}
	check := func(name string, ok bool, format string, args ...any) {
		h.Checks = append(h.Checks, api.HealthCheck{Name: name, OK: ok, Text: fmt.Sprintf(format, args...)})
	}
	workers, jailed := 0, 0
	for _, p := range n.Participants {
		if p.Jailed {
			jailed++
		} else if p.Offers || len(p.Jobs) > 0 {
			workers++
		}
	}
	check("participants", workers > 0, "%d offer work or are in runs, %d are jailed", workers, jailed)
	check("orders", true, "%d wait, %d runs are active", len(n.Orders), len(n.Runs))
	check("books", len(books.Wrong) == 0, "%d modules account for what they hold; %d do not",
		len(books.Books)-len(books.Wrong), len(books.Wrong))
	if slices.ContainsFunc(h.Checks, func(x api.HealthCheck) bool { return !x.OK }) {
		h.Status = "degraded"
	}
	return h
}
