package payout

import (
	"context"

	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/protocol/payout"
)

// Signing is a network that takes signatures from validators that vote no more.
type Signing interface {
	Turn(ctx context.Context) (payout.Turn, error)
	Sign(ctx context.Context, validator []byte, turn uint64, signatures [][]byte) error
}

// Sign sends the signatures of a validator for the messages that the set is signing, and returns their number:
// query.ErrNotFound if there are none.
func Sign(ctx context.Context, n Signing, keys identity.Keys) (int, error) {
	turn, err := n.Turn(ctx)
	if err != nil {
		return 0, err
	}
	secret := payout.NewSecret(keys.VRF.Seed())
	signatures := make([][]byte, len(turn.Messages))
	for i, m := range turn.Messages {
		if signatures[i], err = secret.Sign(m); err != nil {
			return 0, err
		}
	}
	return len(signatures), n.Sign(ctx, keys.Consensus.PubKey().Address(), turn.Number, signatures)
}
