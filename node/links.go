package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/network/peer"
)

// reported are the links that participants told the chain of in the epoch that goes on: those of the members of a run, or all if job
// is "".
func reported(ctx context.Context, c *client.Client, job string) ([]api.Link, error) {
	measured, err := c.Links(ctx, job)
	links := make([]api.Link, 0, len(measured))
	for _, m := range measured {
		links = append(links, api.Link{By: m.By, Of: m.Of, Bytes: m.Bytes, Rate: m.Rate() * 125, RTT: m.RTT}) // 1 kbit/s is 125 bytes/s
	}
	return links, err
}

// links are those between the hosts of an embedded network, which is too small and too short for reports to its chain.
func (n *embedded) links(context.Context) (links []api.Link, err error) {
	accounts, hosts := map[peer.ID]string{}, map[string]*peer.Host{}
	add := func(account string, h *peer.Host) { accounts[h.ID()], hosts[account] = account, h }
	add(n.consumer.chain.Address(), n.consumer.host)
	for _, p := range n.parties {
		add(p.id, p.host)
	}
	for by, h := range hosts {
		for _, l := range h.Peers() {
			if of, known := accounts[l.Peer]; known && l.Delivered.Bytes > 0 {
				links = append(links, api.Link{By: by, Of: of, Bytes: l.Delivered.Bytes, Rate: rateOf(l), RTT: milliseconds(l.Shortest)})
			}
		}
	}
	slices.SortFunc(links, func(a, b api.Link) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Of, b.Of)) })
	return links, nil
}

// rateOf is how many bytes a second a peer delivered: in the waits that measure the way, or, where none did, as its host guesses.
func rateOf(l peer.Link) uint64 {
	if l.Delivered.Timed > 0 && l.Delivered.Waited > 0 {
		return uint64(float64(l.Delivered.Timed) / l.Delivered.Waited.Seconds())
	}
	return uint64(l.Download)
}

// milliseconds of a round trip, rounded up: what was measured is at least one.
func milliseconds(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}

// writeLinks records who fetched from whom.
func (c *collector) writeLinks(ctx context.Context) error {
	links, err := c.links(ctx)
	if err != nil {
		return err
	}
	return writeLines(c.out, fileLinks, links)
}
