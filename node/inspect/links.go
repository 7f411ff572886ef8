package inspect

import (
	"context"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/network/peer/link"
)

// ReportedLinks are the links that participants reported to the chain in the current epoch: those of the members of a
// run, or all if job is "".
func ReportedLinks(ctx context.Context, c *client.Client, job string) ([]api.Link, error) {
	measured, err := c.Reward.Links(ctx, job)
	links := make([]api.Link, 0, len(measured))
	for _, m := range measured {
		// 1 kbit/s is 125 bytes/s
		links = append(links, api.Link{By: m.By, Of: m.Of, Bytes: m.Bytes, Rate: m.Rate() * 125, RTT: m.RTT})
	}
	return links, err
}

// RateOf is how many bytes a second a peer delivered: in the waits that measure the way, or, where none did, as its
// host guesses.
func RateOf(l link.State) uint64 {
	if l.Delivered.Timed > 0 && l.Delivered.Waited > 0 {
		return uint64(float64(l.Delivered.Timed) / l.Delivered.Waited.Seconds())
	}
	return uint64(l.Download)
}

// Milliseconds of a round trip, rounded up: what was measured is at least one.
func Milliseconds(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}
