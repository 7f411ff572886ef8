package keyring

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/node/shards"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/bundle"
)

// ErrOutsider says that an account with no duty in a run cannot read its data.
var ErrOutsider = errors.New("the data of the job is encrypted for those with a duty in its run")

// Chain is what a member of a run reads of the network. client.Member implements it.
type Chain interface {
	Address() string                                // account of the member
	Consumer(ctx context.Context) ([]string, error) // addresses of the account that ordered the job
}

// Holder is a member of a run that reads its data.
type Holder struct {
	Folder string // of the member
	Job    string
	Chain  Chain
	Host   *peer.Host
}

// Reader returns how a shard of a job is read in the clear, given how its bytes are fetched: ErrOutsider if these are
// encrypted, and the account has no duty in the run.
func (h Holder) Reader(j *bundle.Job, s run.State, fetch shards.Fetch) (shards.Fetch, error) {
	if j.Cipher == "" {
		return fetch, nil
	}
	id := h.Chain.Address()
	if _, known := s.Member(id); !known {
		return nil, ErrOutsider
	}
	r, err := Open(h.Folder, h.Job, id, len(j.Shards), h.ask)
	if err != nil {
		return nil, err
	}
	return r.Decrypt(fetch), nil
}

// errUnknown says that no address of the consumer is known.
var errUnknown = errors.New("the network does not know where the consumer is")

// ask sends a question to the addresses of the consumer, one after the other, until one answers.
func (h Holder) ask(ctx context.Context, question []byte) ([]byte, error) {
	addrs, err := h.Chain.Consumer(ctx)
	if err != nil {
		return nil, err
	}
	err = errUnknown
	for _, info := range address.Others(h.Host.ID(), addrs) {
		var body []byte
		if body, err = h.Host.Ask(ctx, info, message.Keys, question); err == nil {
			return body, nil
		}
	}
	return nil, fmt.Errorf("the consumer does not answer: %w", err)
}
