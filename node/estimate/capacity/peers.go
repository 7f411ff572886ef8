package capacity

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/registry"
)

// Peer is a participant that the beacon drew.
type Peer struct {
	ID     string  `json:"id"` // account
	Millis float64 `json:"round_trip_ms,omitempty"`
	Error  string  `json:"error,omitempty"` // it was not reached
}

// DrawnPeers is how many peers DrawPeers draws at most.
const DrawnPeers = 5

const (
	pings    = 3
	patience = 5 * time.Second // for the beacon, and for each peer
)

// Peers measures the round trips to participants of a network that its latest beacon draws, so that no owner of a
// few of them chooses the peers of a newcomer. One that reports a short time gains nothing by it.
func Peers(ctx context.Context, network string) ([]Peer, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, beacon, err := c.Registry.Beacon(wait)
	if err != nil {
		return nil, fmt.Errorf("capacity: the beacon of the network: %w", err)
	}
	all, err := c.Registry.Participants(ctx)
	if err != nil {
		return nil, err
	}
	h, err := peer.New(peer.Config{Key: peer.KeyFromSeed(beacon), Store: blob.NewMemory()})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	var found []Peer
	for _, p := range DrawPeers(all, beacon) {
		at := Peer{ID: p.ID}
		if trip, err := trip(ctx, h, p.Addrs); err == nil {
			at.Millis = float64(trip.Microseconds()) / 1e3
		} else {
			at.Error = err.Error()
		}
		found = append(found, at)
	}
	return found, ctx.Err()
}

// DrawPeers draws participants that others can dial.
func DrawPeers(all []registry.Participant, beacon canon.Digest) []registry.Participant {
	all = slices.DeleteFunc(slices.Clone(all), func(p registry.Participant) bool { return len(p.Addrs) == 0 || p.Jailed })
	lot := func(p registry.Participant) uint64 {
		d := canon.Sum("starling/capacity/peer/1", beacon[:], []byte(p.ID))
		return binary.BigEndian.Uint64(d[:])
	}
	slices.SortFunc(all, func(a, b registry.Participant) int { return cmp.Compare(lot(a), lot(b)) })
	return all[:min(len(all), DrawnPeers)]
}

// trip is the shortest of some round trips to a peer, by the first of its addresses that answers.
func trip(ctx context.Context, h *peer.Host, addrs []string) (best time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, addr := range addrs {
		control, failed := h.Control(ctx, addr)
		if err = failed; failed != nil {
			continue
		}
		for range pings {
			took, failed := control.Ping(ctx)
			if err = failed; failed != nil {
				break
			}
			if best == 0 || took < best {
				best = took
			}
		}
		_ = control.Close()
		if best > 0 {
			return best, nil
		}
	}
	return 0, err
}
