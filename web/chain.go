package web

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/starling-network/starling/client/api"
)

var errNoNetwork = fail(http.StatusNotFound, "NO_NETWORK", "this server was told of no network",
	"start it with starling web --network URL")

// chainPatience is how long a network may take for an answer.
const chainPatience = 10 * time.Second

// ask calls a network within its time, if there is one. What it fails with is its to tell: it is the owner's own.
func ask[T any](s *Server, r *http.Request, call func(context.Context, Network) (T, error)) (v T, err error) {
	if s.Network == nil {
		return v, errNoNetwork
	}
	ctx, cancel := context.WithTimeout(r.Context(), chainPatience)
	defer cancel()
	return call(ctx, s.Network)
}

func (s *Server) overview(r *http.Request) (api.Network, error) {
	return ask(s, r, func(ctx context.Context, n Network) (api.Network, error) { return n.Overview(ctx) })
}

func (s *Server) network(r *http.Request) (any, error) { return s.overview(r) }

func (s *Server) workers(r *http.Request) (any, error) {
	n, err := s.overview(r)
	return api.Workers{Height: n.Height, Workers: some(n.Participants)}, err
}

func (s *Server) validators(r *http.Request) (any, error) {
	n, err := s.overview(r)
	return api.Validators{Height: n.Height, Window: n.Window, Validators: some(n.Validators)}, err
}

const maxAddress = 128

func (s *Server) account(r *http.Request) (any, error) {
	address := r.PathValue("address")
	for _, c := range address {
		if len(address) > maxAddress || (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return nil, fail(http.StatusBadRequest, "ADDRESS_INVALID", "an address is made of lower-case letters and digits",
				"take it from /v1/workers or a receipt")
		}
	}
	return ask(s, r, func(ctx context.Context, n Network) (api.Account, error) { return n.Account(ctx, address) })
}

func (s *Server) blocks(r *http.Request) (any, error) {
	limit, err := whole(r, "limit", 20, 1, 100)
	if err != nil {
		return nil, err
	}
	var before int64
	if after := r.URL.Query().Get("after"); after != "" {
		text, err := base64.RawURLEncoding.DecodeString(after)
		n, wrong := strconv.ParseInt(string(text), 10, 64)
		if err != nil || wrong != nil || n < 1 {
			return nil, badParam("after", after, "the cursor of a page")
		}
		before = n
	}
	return ask(s, r, func(ctx context.Context, n Network) (api.Blocks, error) {
		list, next, err := n.Blocks(ctx, before, int(limit), r.URL.Query().Get("busy") == "true")
		b := api.Blocks{Blocks: some(list), HasMore: next > 1}
		if b.HasMore {
			b.After = base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, next, 10))
		}
		return b, err
	})
}

func (s *Server) tx(r *http.Request) (any, error) {
	hash := r.PathValue("hash")
	if b, err := hex.DecodeString(hash); err != nil || len(b) != 32 {
		return nil, fail(http.StatusBadRequest, "HASH_INVALID", "the hash of a transaction has 64 hexadecimal digits",
			"take it from /v1/blocks")
	}
	height, err := whole(r, "height", 0, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return ask(s, r, func(ctx context.Context, n Network) (api.Tx, error) { return n.Tx(ctx, hash, height) })
}

// staleBlock is the age at which the latest block means that the chain stands still.
const staleBlock = time.Minute

func (s *Server) health(r *http.Request) (any, error) {
	h := api.Health{Status: "ok", Uptime: time.Since(s.started).Seconds()}
	h.Checks = append(h.Checks, s.runsCheck(r),
		api.HealthCheck{Name: "streams", OK: true,
			Text: fmt.Sprintf("%d of at most %d event streams are open", s.stats.streams.Load(), s.Streams)})
	if s.Room != nil {
		h.Checks = append(h.Checks, s.roomCheck())
	}
	if s.Network != nil {
		if n, err := s.overview(r); err != nil {
			h.Checks = append(h.Checks, unanswered)
		} else {
			h.Checks = append(h.Checks, NetworkChecks(n, time.Now())...)
		}
	}
	for _, c := range h.Checks {
		if !c.OK {
			h.Status = "degraded"
		}
	}
	return h, nil
}

func (s *Server) runsCheck(r *http.Request) api.HealthCheck {
	jobs, err := s.Runs.List(r.Context())
	if err != nil {
		return api.HealthCheck{Name: "runs", Text: "the runs cannot be read"}
	}
	return api.HealthCheck{Name: "runs", OK: true, Text: fmt.Sprintf("%d runs are known", len(jobs))}
}

// leastRoom is how much has to be free where runs are kept: less holds up the next checkpoint of a small model.
const leastRoom = 1 << 30

func (s *Server) roomCheck() api.HealthCheck {
	n, ok := s.Room()
	if !ok {
		return api.HealthCheck{Name: "disk", OK: true, Text: "how much is free is not known here"}
	}
	return api.HealthCheck{Name: "disk", OK: n >= leastRoom,
		Text: fmt.Sprintf("%.1f GB are free where the runs are", float64(n)/1e9)}
}

// maxSkew is how far the clock of this machine may be behind the latest block.
const maxSkew = 10 * time.Second

// NetworkChecks looks at a network after its latest block: whether the validator that was asked is up to date and
// connected, whether those vote who should, and whether this machine's clock fits.
func NetworkChecks(n api.Network, now time.Time) []api.HealthCheck {
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

func (s *Server) networkCheck(r *http.Request) api.HealthCheck {
	n, err := s.overview(r)
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
