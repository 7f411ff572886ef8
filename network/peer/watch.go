package peer

import (
	"context"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"

	"github.com/starling-network/starling/network/peer/fetch"
)

// Watch calls told with the addresses of the host, at once and whenever they change, until the context ends or told
// returns an error, which is returned.
func (h *Host) Watch(ctx context.Context, told func(addrs []string) error) error {
	changes, err := h.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated), eventbus.Name("starling"))
	if err != nil {
		return err
	}
	defer changes.Close()
	for {
		if err := told(h.Addrs()); err != nil {
			return err
		}
		select {
		case _, ok := <-changes.Out():
			if !ok {
				return fetch.ErrClosed
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-h.life.Context().Done():
			return fetch.ErrClosed
		}
	}
}
