package keyring

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/message"
)

// errNobody says that nobody was asked.
var errNobody = errors.New("the network does not know where the consumer is")

// Through asks by a host. consumer says under which addresses the consumer may be reached.
func Through(h *peer.Host, consumer func(ctx context.Context) ([]string, error)) Ask {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		addrs, err := consumer(ctx)
		if err != nil {
			return nil, err
		}
		err = errNobody
		for _, info := range address.Others(h.ID(), addrs) {
			var body []byte
			if body, err = h.Ask(ctx, info, message.Keys, question); err == nil {
				return body, nil
			}
		}
		return nil, fmt.Errorf("the consumer does not answer: %w", err)
	}
}
