// Package client speaks for one account to a network: it signs and submits messages, waits until they are in a block,
// and reads the chain in the types of protocol/. It works in the same way inside the process of a validator and over
// the HTTP interface of one. It decides nothing; that is role/.
package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client/gas"
)

// Errors of the client. A message that the chain refused is an *Error.
var (
	ErrNotFound  = errors.New("client: the chain has no such thing")
	ErrNoAccount = errors.New("client: the account does not exist: it does once it has coins")
	ErrClosed    = errors.New("client: the connection is closed")
	ErrLost      = errors.New("client: the transaction was never included in a block")
	ErrRejected  = errors.New("client: the chain refused the transaction")
)

// Client is the connection of one account. It is safe for concurrent use; the messages of one account must go through
// one client, which counts their sequence.
type Client struct {
	rpc             rpcclient.Client
	signer          Signer
	name            string // of the subscription
	conn            sdkclient.Context
	closeConnection func() error // ends the connection, if it is the client's own

	submit  Submitter // in place of rpc
	account account
	gas     gas.Usage
	follow  follower
}

// Submitter carries messages of an account to the chain, and returns when they are in a block or refused, like
// Client.Submit.
type Submitter func(ctx context.Context, msgs ...sdk.Msg) (Result, error)

var clients atomic.Uint64

var encoding = sync.OnceValues(wire.NewEncoding)

// New returns a client of the account of a signer over a connection to a validator.
func New(rpc rpcclient.Client, signer Signer) *Client {
	e, err := encoding()
	if err != nil {
		panic(err) // the messages of the program itself are wrong
	}
	return &Client{
		rpc: rpc, signer: signer,
		name: fmt.Sprintf("client-%d-%s", clients.Add(1), signer.Address()),
		conn: sdkclient.Context{}.WithClient(rpc).WithCodec(e.Codec).WithInterfaceRegistry(e.Registry),
	}
}

// NewWithSubmitter returns a client that reads over a connection and sends messages through a Submitter. It does not
// follow blocks.
func NewWithSubmitter(rpc rpcclient.Client, signer Signer, submit Submitter) *Client {
	c := New(rpc, signer)
	c.submit = submit
	return c
}

// Connect returns a client of the account of a signer over a connection of its own, as Dial makes it.
func Connect(addresses string, signer Signer) (*Client, error) {
	rpc, err := Dial(addresses)
	if err != nil {
		return nil, err
	}
	c := New(rpc, signer)
	c.closeConnection = rpc.Stop
	return c, nil
}

// Address of the account.
func (c *Client) Address() string { return c.signer.Address() }

// Close ends the client, and a connection of its own. One that it was given others may use.
func (c *Client) Close() {
	c.follow.mu.Lock()
	running := c.follow.running
	c.follow.mu.Unlock()
	if running {
		// The validator may be gone already.
		_ = c.rpc.Unsubscribe(context.Background(), c.name, newBlock)
	}
	c.end()
	if c.closeConnection != nil {
		_ = c.closeConnection() // fails only for what does not run
	}
}
