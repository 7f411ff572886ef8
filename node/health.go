package node

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
)

// NetworkPeers are the processes that a validator is connected to.
func NetworkPeers(ctx context.Context, network string) ([]client.Peer, error) {
	c, _, err := ask(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Peers(ctx)
}

// blockAge is how old the latest block of a network in health may be.
const blockAge = time.Minute

// NetworkHealth looks at a network through one of its validators: whether it makes blocks, whether those vote who should, who is
// jailed, and whether its books are balanced.
func NetworkHealth(ctx context.Context, network string, now time.Time) (*api.Health, error) {
	s, err := AskNetwork(ctx, network, "")
	if err != nil {
		return nil, err
	}
	peers, err := NetworkPeers(ctx, network)
	if err != nil {
		return nil, err
	}
	books, err := CheckBooks(ctx, network)
	if err != nil {
		return nil, err
	}
	return networkHealth(s, len(peers), books, now), nil
}

func networkHealth(s *NetworkStatus, peers int, books *Books, now time.Time) *api.Health {
	h := &api.Health{Status: "ok"}
	check := func(name string, ok bool, format string, args ...any) {
		h.Checks = append(h.Checks, api.HealthCheck{Name: name, OK: ok, Text: fmt.Sprintf(format, args...)})
		if !ok {
			h.Status = "degraded"
		}
	}
	age := now.Sub(s.Time).Round(time.Second)
	check("blocks", age < blockAge, "block %d is %s old", s.Height, max(age, 0))
	check("caught up", !s.CatchingUp, "the validator that was asked %s", map[bool]string{false: "has all blocks", true: "is behind the others"}[s.CatchingUp])
	var power, signed int64
	for _, v := range s.Validators {
		power += v.Power
		if v.Signed {
			signed += v.Power
		}
	}
	check("votes", 3*signed > 2*power, "%d of the %d votes are under the latest block; more than two thirds are needed", signed, power)
	check("peers", len(s.Validators) == 1 || peers > 0, "the validator that was asked is connected to %d others", peers)
	workers, jailed := 0, 0
	for _, p := range s.Participants {
		if p.Jailed {
			jailed++
		} else if p.Offers || len(p.Jobs) > 0 {
			workers++
		}
	}
	check("participants", workers > 0, "%d offer work or are in runs, %d are jailed", workers, jailed)
	check("orders", true, "%d wait, %d runs go on", len(s.Orders), len(s.Runs))
	check("books", len(books.Wrong) == 0, "%d modules account for what they hold; %d do not", len(books.Books)-len(books.Wrong), len(books.Wrong))
	return h
}
