// Package submit sends messages of an account, one at a time. It signs nothing and keeps no connection.
package submit

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

// Send submits a message.
func Send(ctx context.Context, a Account, m sdk.Msg) error {
	_, err := a.Submit(ctx, m)
	return err
}

// Ask is Send, and reads the response.
func Ask(ctx context.Context, a Account, m sdk.Msg, response proto.Message) error {
	r, err := a.Submit(ctx, m)
	if err != nil {
		return err
	}
	return r.Response(response)
}
