package order

import (
	"context"
	"net/http"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/web/failure"
)

// Numerics is the version of the numerics that an order in the next block must have.
func Numerics(ctx context.Context, c *client.Client) (uint32, error) {
	head, err := c.Ledger.Head(ctx)
	var p market.Params
	if err == nil {
		p, err = c.Market.Params(ctx)
	}
	if err != nil {
		return 0, Unreachable(err)
	}
	version := p.NumericsAt(head.Height + 1)
	if err := kernel.Knows(version); err != nil {
		return 0, failure.New(http.StatusNotImplemented, "NUMERICS_UNKNOWN", "the network asks for "+err.Error(),
			"start the server with a build that computes it")
	}
	return version, nil
}

// Unreachable is an error of a network that does not answer, for clients.
func Unreachable(err error) error {
	return &failure.Error{Status: http.StatusServiceUnavailable, Code: "NETWORK_UNREACHABLE",
		Detail: "the network does not answer: " + err.Error(), Fix: "try again", Retry: 2 * time.Second}
}
