// Package network is the part of the API that shows a chain: its latest block, participants, validators, accounts,
// blocks and transactions, as source.Network reports them. It checks no block.
package network

import (
	"context"
	"encoding/hex"
	"math"
	"net/http"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/source"
)

var errNoNetwork = failure.New(http.StatusNotFound, "NO_NETWORK", "this server was told of no network",
	"start it with starling web --network URL")

// Timeout is how long a network may take for an answer.
const Timeout = 10 * time.Second

// API answers about one network.
type API struct {
	Network source.Network // nil: there is none, and every operation says so
}

// Routes are the operations of the network.
func (a *API) Routes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/network", Scope: access.Read, Summary: "The network after its latest block",
			Answer: api.Network{}, Handle: a.overview},
		{Method: "GET", Path: "/v1/workers", Scope: access.Read, Summary: "Who works for the network",
			Answer: api.Workers{}, Handle: a.workers},
		{Method: "GET", Path: "/v1/validators", Scope: access.Read, Summary: "Who votes on the network's blocks",
			Answer: api.Validators{}, Handle: a.validators},
		{Method: "GET", Path: "/v1/accounts/{address}", Scope: access.Read,
			Summary: "An account, what it does and what it waits for", Answer: api.Account{}, Handle: a.account},
		{Method: "GET", Path: "/v1/blocks", Scope: access.Read, Summary: "Blocks, the latest first",
			Answer: api.Blocks{}, Handle: a.blocks,
			Params: append([]request.Param{request.Query("busy", "boolean", "only those with transactions, of the 300 "+
				"blocks before the cursor: a page may be empty and not the last")}, request.PageParams...)},
		{Method: "GET", Path: "/v1/txs/{hash}", Scope: access.Read,
			Summary: "A transaction. Without a height it is looked for in the index of the validator, or, where there " +
				"is none, in the latest 200 blocks", Answer: api.Tx{}, Handle: a.tx,
			Params: []request.Param{request.Query("height", "integer", "of its block")}},
	}
}

// ask calls a network within its time, if there is one. Its error is passed on as it is, since the source wrote it for
// clients.
func ask[T any](ctx context.Context, n source.Network,
	call func(context.Context, source.Network) (T, error)) (v T, err error) {
	if n == nil {
		return v, errNoNetwork
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return call(ctx, n)
}

// Overview asks a network, which may be nil, how it is after its latest block.
func Overview(ctx context.Context, n source.Network) (api.Network, error) {
	return ask(ctx, n, func(ctx context.Context, n source.Network) (api.Network, error) { return n.Overview(ctx) })
}

func (a *API) overview(r *http.Request) (any, error) { return Overview(r.Context(), a.Network) }

func (a *API) workers(r *http.Request) (any, error) {
	n, err := Overview(r.Context(), a.Network)
	return api.Workers{Height: n.Height, Workers: answer.Slice(n.Participants)}, err
}

func (a *API) validators(r *http.Request) (any, error) {
	n, err := Overview(r.Context(), a.Network)
	return api.Validators{Height: n.Height, Window: n.Window, Validators: answer.Slice(n.Validators)}, err
}

const maxAddress = 128

func (a *API) account(r *http.Request) (any, error) {
	address := r.PathValue("address")
	for _, c := range address {
		if len(address) > maxAddress || (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return nil, failure.New(http.StatusBadRequest, "ADDRESS_INVALID",
				"an address is made of lower-case letters and digits", "take it from /v1/workers or a receipt")
		}
	}
	return ask(r.Context(), a.Network, func(ctx context.Context, n source.Network) (api.Account, error) {
		return n.Account(ctx, address)
	})
}

func (a *API) blocks(r *http.Request) (any, error) {
	limit, err := request.Int(r, "limit", 20, 1, 100)
	if err != nil {
		return nil, err
	}
	before, err := request.Cursor(r, 1)
	if err != nil {
		return nil, err
	}
	return ask(r.Context(), a.Network, func(ctx context.Context, n source.Network) (api.Blocks, error) {
		list, next, err := n.Blocks(ctx, before, int(limit), r.URL.Query().Get("busy") == "true")
		b := api.Blocks{Blocks: answer.Slice(list), HasMore: next > 1}
		if b.HasMore {
			b.After = request.EncodeCursor(next)
		}
		return b, err
	})
}

func (a *API) tx(r *http.Request) (any, error) {
	hash := r.PathValue("hash")
	if b, err := hex.DecodeString(hash); err != nil || len(b) != 32 {
		return nil, failure.New(http.StatusBadRequest, "HASH_INVALID",
			"the hash of a transaction has 64 hexadecimal digits", "take it from /v1/blocks")
	}
	height, err := request.Int(r, "height", 0, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return ask(r.Context(), a.Network, func(ctx context.Context, n source.Network) (api.Tx, error) {
		return n.Tx(ctx, hash, height)
	})
}
