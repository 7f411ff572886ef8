package localnet

import (
	"cmp"
	"context"
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/inspect"
)

// Links are those between the hosts of an embedded network, which is too small and too short for reports to its chain.
func (n *Network) Links(context.Context) (links []api.Link, err error) {
	accounts, hosts := map[peer.ID]string{}, map[string]*peer.Host{}
	add := func(account string, h *peer.Host) { accounts[h.ID()], hosts[account] = account, h }
	add(n.consumer.Chain.Address(), n.consumer.Host)
	for _, p := range n.Parties {
		add(p.ID, p.Host)
	}
	for by, h := range hosts {
		for _, l := range h.Peers() {
			if of, known := accounts[l.Peer]; known && l.Delivered.Bytes > 0 {
				links = append(links, api.Link{By: by, Of: of, Bytes: l.Delivered.Bytes, Rate: inspect.RateOf(l),
					RTT: inspect.Milliseconds(l.Shortest)})
			}
		}
	}
	slices.SortFunc(links, func(a, b api.Link) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Of, b.Of)) })
	return links, nil
}

func (n *Network) traffic() (sent, received uint64) {
	for _, p := range n.Parties {
		s, r := p.Host.Traffic()
		sent, received = sent+s, received+r
	}
	return sent, received
}

// stored returns a blob that a party has.
func (n *Network) stored(ctx context.Context, id blob.CID) (b []byte, err error) {
	err = blob.ErrNotFound
	for _, p := range n.Parties {
		if b, err = p.Store.Get(ctx, id); err == nil {
			return b, nil
		}
	}
	return nil, err
}
