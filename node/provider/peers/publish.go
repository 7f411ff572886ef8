package peers

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/starling-network/starling/network/peer"
)

// Told are the addresses that a process told the chain. It finds that a copy of the key is in use: addresses which the
// process never told take the place of its own.
type Told struct {
	mu      sync.Mutex
	lists   [][]string // the latest, and what the chain had first
	seen    bool       // the chain was looked at
	strange int        // successive blocks in which the chain has others
	warned  string
}

const (
	maxTold     = 16 // lists
	leastBlocks = 3  // in which the chain has other addresses: a change that was just told may be on its way
)

// Publish puts the addresses of a host, which the process registered with, on the chain whenever they change.
func (t *Told) Publish(ctx context.Context, host *peer.Host, tell func(ctx context.Context, id string,
	addrs []string) error, log *slog.Logger) {
	there := Advertised(host.Addrs())
	_ = host.Watch(ctx, func(addrs []string) error {
		addrs = Advertised(addrs)
		if slices.Equal(addrs, there) {
			return nil
		}
		t.add(addrs)
		if err := tell(ctx, host.ID().String(), addrs); err != nil {
			log.Warn("cannot tell the chain where this peer is reached", "err", err)
			return nil // the next change tries again
		}
		log.Info("reached at", "addresses", addrs)
		there = addrs
		return nil
	})
}

// add is called before the process tells the chain some addresses.
func (t *Told) add(addrs []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lists = append(t.lists, slices.Clone(addrs))
	if len(t.lists) > maxTold {
		t.lists = slices.Delete(t.lists, 0, 1)
	}
}

// Block takes the addresses that the chain has after a block, and those of the host. It returns a warning
// when a process with a copy of the key has put its own there, once for each list; "" otherwise.
func (t *Told) Block(there, own []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.seen { // a process that only drains, or that was barred, tells nothing
		t.seen = true
		t.lists = append(t.lists, slices.Clone(there))
	}
	same := func(list []string) bool { return slices.Equal(list, there) }
	if slices.ContainsFunc(t.lists, same) || same(own) {
		t.strange = 0
		return ""
	}
	text := strings.Join(there, ", ")
	if t.strange++; t.strange < leastBlocks || text == t.warned {
		return ""
	}
	t.warned = text
	return "KEY_IN_USE: another process works with a copy of this key, and is reached at " + text + ". The two spoil " +
		"each other's transactions, and peers find one of them alone. Stop one; another machine gets a key of its own in " +
		"another --home, or by starling fleet add"
}
