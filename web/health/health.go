// Package health says whether a server, and what it shows, works: for people at /v1/health, and for load balancers by
// gRPC. It repairs nothing.
package health

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/network"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/stream"
)

// API answers about one server.
type API struct {
	Runs    source.Runs
	Network source.Network // nil: none is shown
	Streams *stream.Streams
	// free bytes where runs are kept, not ok if that is not known; nil: it is not looked at
	Room    func() (bytes int64, ok bool)
	Started time.Time
}

// Routes are the operations of the health of a server.
func (a *API) Routes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/health", Summary: "Whether the server, and what it shows, works", Answer: api.Health{},
			Handle: a.health},
	}
}

// staleBlock is the age at which the latest block means that the chain stands still.
const staleBlock = time.Minute

func (a *API) health(r *http.Request) (any, error) {
	h := api.Health{Status: "ok", Uptime: time.Since(a.Started).Seconds()}
	h.Checks = append(h.Checks, a.CheckRuns(r.Context()),
		api.HealthCheck{Name: "streams", OK: true,
			Text: fmt.Sprintf("%d of at most %d event streams are open", a.Streams.Counts().Open, a.Streams.Max)})
	if a.Room != nil {
		h.Checks = append(h.Checks, a.checkRoom())
	}
	if a.Network != nil {
		if n, err := network.Overview(r.Context(), a.Network); err != nil {
			h.Checks = append(h.Checks, unanswered)
		} else {
			h.Checks = append(h.Checks, CheckBlock(n, time.Now())...)
		}
	}
	for _, c := range h.Checks {
		if !c.OK {
			h.Status = "degraded"
		}
	}
	return h, nil
}

// CheckRuns says whether the runs can be read.
func (a *API) CheckRuns(ctx context.Context) api.HealthCheck {
	jobs, err := a.Runs.List(ctx)
	if err != nil {
		return api.HealthCheck{Name: "runs", Text: "the runs cannot be read"}
	}
	return api.HealthCheck{Name: "runs", OK: true, Text: fmt.Sprintf("%d runs are known", len(jobs))}
}

// leastRoom is how much has to be free where runs are kept: less holds up the next checkpoint of a small model.
const leastRoom = 1 << 30

func (a *API) checkRoom() api.HealthCheck {
	n, ok := a.Room()
	if !ok {
		return api.HealthCheck{Name: "disk", OK: true, Text: "how much is free is not known here"}
	}
	return api.HealthCheck{Name: "disk", OK: n >= leastRoom,
		Text: fmt.Sprintf("%.1f GB are free where the runs are", float64(n)/1e9)}
}

// maxSkew is how far the clock of this machine may be behind the latest block.
const maxSkew = 10 * time.Second

// CheckBlock checks a network after its latest block: whether the validator that was asked is up to date and connected,
// whether enough validators vote, and whether this machine's clock fits.
func CheckBlock(n api.Network, now time.Time) []api.HealthCheck {
	var power, signed int64
	for _, v := range n.Validators {
		power += v.Power
		if v.Signed {
			signed += v.Power
		}
	}
	age := now.Sub(n.Time)
	clock := api.HealthCheck{Name: "clock", OK: age >= -maxSkew,
		Text: fmt.Sprintf("the latest block was made %s ago by this machine's clock", max(age, 0).Round(time.Second))}
	if !clock.OK {
		clock.Text = fmt.Sprintf("this machine's clock is %s behind the latest block: set it, best by NTP",
			(-age).Round(time.Second))
	}
	return []api.HealthCheck{
		follows(n, now),
		{Name: "peers", OK: n.Peers > 0 || len(n.Validators) < 2,
			Text: fmt.Sprintf("the validator is connected to %d others", n.Peers)},
		{Name: "votes", OK: 3*signed > 2*power,
			Text: fmt.Sprintf("%d of %d of the power signed the latest block", signed, power)},
		clock,
	}
}

// unanswered is the check of a network of which nothing is known.
var unanswered = api.HealthCheck{Name: "network", Text: "the validator does not answer"}

// CheckNetwork says whether the validator is up to date.
func (a *API) CheckNetwork(ctx context.Context) api.HealthCheck {
	n, err := network.Overview(ctx, a.Network)
	if err != nil {
		return unanswered
	}
	return follows(n, time.Now())
}

// follows says whether a validator is up to date.
func follows(n api.Network, now time.Time) api.HealthCheck {
	c := api.HealthCheck{Name: "network"}
	switch {
	case n.CatchingUp:
		c.Text = fmt.Sprintf("the validator is behind the others, at height %d", n.Height)
	case now.Sub(n.Time) > staleBlock:
		c.Text = fmt.Sprintf("the latest block, %d, is older than a minute", n.Height)
	default:
		c.OK, c.Text = true, fmt.Sprintf("%s is at height %d", n.ChainID, n.Height)
	}
	return c
}
