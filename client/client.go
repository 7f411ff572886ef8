// Package client is the connection of one account to a network: it signs and submits messages, waits until they are in
// a block, and reads the chain in the types of protocol/. It works in the same way inside the process of a validator
// and over the HTTP interface of one. It decides nothing; that is role/.
package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/gas"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/validators"
	"github.com/starling-network/starling/client/wallet"
)

// Errors of the client. A message that the chain refused is a *transaction.Error.
var (
	ErrNotFound  = query.ErrNotFound
	ErrNoAccount = errors.New("client: the account does not exist: it does once it has coins")
	ErrClosed    = errors.New("client: the connection is closed")
	ErrLost      = errors.New("client: the transaction was never included in a block")
)

// Client is the connection of one account. It is safe for concurrent use; the messages of one account must go through
// one client, which counts their sequence.
type Client struct {
	module.Modules
	Ledger     ledger.Ledger
	Validators validators.Validators

	rpc             rpcclient.Client
	signer          wallet.Signer
	queries         sdkclient.Context
	closeConnection func() error // ends the connection, if it is the client's own

	submit  Submitter // in place of rpc
	account account
	gas     gas.Usage
	follow  *follower
}

// Submitter carries messages of an account to the chain, and returns when they are in a block or refused, like
// Client.Submit.
type Submitter func(ctx context.Context, msgs ...sdk.Msg) (transaction.Result, error)

var clients atomic.Uint64

// New returns a client of the account of a signer over a connection to a validator.
func New(rpc rpcclient.Client, signer wallet.Signer) *Client {
	e, err := wire.Shared()
	if err != nil {
		panic(err) // the messages of the program itself are wrong
	}
	return over(rpc, signer, sdkclient.Context{}.WithClient(rpc).WithCodec(e.Codec).WithInterfaceRegistry(e.Registry))
}

func over(rpc rpcclient.Client, signer wallet.Signer, queries sdkclient.Context) *Client {
	c := &Client{
		rpc: rpc, signer: signer, queries: queries,
		Ledger: ledger.New(rpc, queries), Validators: validators.New(rpc, queries),
	}
	c.Modules = module.Of(c)
	c.follow = &follower{rpc: rpc, name: fmt.Sprintf("client-%d-%s", clients.Add(1), signer.Address()), resend: c.resend}
	return c
}

// At returns a client that reads the state after the block at a height. It is for queries only, and needs no Close.
func (c *Client) At(height int64) *Client { return over(c.rpc, c.signer, c.queries.WithHeight(height)) }

// NewWithSubmitter returns a client that reads over a connection and sends messages through a Submitter. It does not
// follow blocks.
func NewWithSubmitter(rpc rpcclient.Client, signer wallet.Signer, submit Submitter) *Client {
	c := New(rpc, signer)
	c.submit = submit
	return c
}

// Connect returns a client of the account of a signer over a connection of its own, as Dial makes it.
func Connect(addresses string, signer wallet.Signer) (*Client, error) {
	rpc, err := endpoint.Dial(addresses)
	if err != nil {
		return nil, err
	}
	c := New(rpc, signer)
	c.closeConnection, c.follow.remote = rpc.Stop, true
	return c, nil
}

// Address of the account.
func (c *Client) Address() string { return c.signer.Address() }

// Sign implements module.Account.
func (c *Client) Sign(message []byte) ([]byte, error) { return c.signer.Sign(message) }

// Invoke implements grpc.ClientConnInterface: a query of the state.
func (c *Client) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	return c.queries.Invoke(ctx, method, request, answer, options...)
}

// NewStream implements grpc.ClientConnInterface: there are none.
func (c *Client) NewStream(ctx context.Context, d *grpc.StreamDesc, method string,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.queries.NewStream(ctx, d, method, options...)
}

// Blocks delivers every new block until the context or the connection ends, and closes the channel then. A reader that
// is slow finds the latest block, not those it has missed.
func (c *Client) Blocks(ctx context.Context) (<-chan Block, error) { return c.follow.blocks(ctx) }

// Close ends the client, and a connection of its own. One that it was given others may use.
func (c *Client) Close() {
	c.follow.close()
	if c.closeConnection != nil {
		_ = c.closeConnection() // fails only for what does not run
	}
}
