// Package module has a type for each module of the chain, which sends its messages and its queries in the types of
// protocol/. It signs nothing and keeps no connection; that is package client.
package module

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/client/transaction"
)

// Account is the account that messages are of. Its connection answers queries.
type Account interface {
	grpc.ClientConnInterface
	Address() string
	Sign(message []byte) ([]byte, error)
	// Submit returns when the messages are in a block, or with the reason why one is refused.
	Submit(ctx context.Context, msgs ...sdk.Msg) (transaction.Result, error)
	// SubmitNoted is Submit with a public note.
	SubmitNoted(ctx context.Context, memo string, msgs ...sdk.Msg) (transaction.Result, error)
}

// Modules are all of them, for one account.
type Modules struct {
	Coins    Coins
	Hosting  Hosting
	Market   Market
	Payout   Payout
	Registry Registry
	Reward   Reward
	Sale     Sale
	Stakes   Stakes
	Training Training
	Work     Work
}

// Of returns the modules for an account.
func Of(a Account) Modules {
	t := Training{a}
	return Modules{Coins: Coins{a}, Hosting: Hosting{a}, Market: Market{a}, Payout: Payout{a}, Registry: Registry{a},
		Reward: Reward{a, t}, Sale: Sale{a}, Training: t, Stakes: Stakes{a}, Work: Work{a}}
}

func send(ctx context.Context, a Account, m sdk.Msg) error {
	_, err := a.Submit(ctx, m)
	return err
}

// ask is send, and reads the response.
func ask(ctx context.Context, a Account, m sdk.Msg, response proto.Message) error {
	r, err := a.Submit(ctx, m)
	if err != nil {
		return err
	}
	return r.Response(response)
}
