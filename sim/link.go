package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/tally"
	"github.com/starling-network/starling/sim/link"
)

// transfer takes the time of a blob. A machine sends one blob after the other, in the order in which they are asked
// for, and receives so: the bytes wait for those before them, on the way up of the one and on the way down of the
// other.
func (w *Network) transfer(from, to *process, bytes int) error {
	begin := max(from.sending, w.clock.Now)
	sent := begin + link.Over(bytes, from.link.Noisy(w.random, from.link.Up))
	from.sending = sent
	line, peer := to.line, to.deliveredBy(from)
	line.Begin(peer, w.clock.Now)
	if err := w.clock.Sleep(begin - w.clock.Now); err != nil {
		return err
	}
	to.receiving = max(to.receiving, w.clock.Now) + link.Over(bytes, to.link.Noisy(w.random, to.link.Down))
	from.usage.Sent += uint64(bytes)
	if from.role == 0 {
		to.usage.Job += uint64(bytes)
	} else {
		to.usage.Received += uint64(bytes)
		if from.machine.Place != to.machine.Place {
			to.usage.Far += uint64(bytes)
		}
	}
	late := from.link.Delay(w.random, 0)
	if err := w.clock.Sleep(max(sent, to.receiving) - w.clock.Now); err != nil {
		return err
	}
	line.Add(peer, bytes)
	line.End(peer, w.clock.Now, 0)
	return w.clock.Sleep(late)
}

// carry takes the time of bytes to the machine of an account.
func (p *process) carry(to string, bytes int) error {
	for _, other := range p.world.at {
		switch {
		case other == p || other.key.Address() != to:
		case !other.up || p.world.cuts.apart(p, other):
			return fmt.Errorf("sim: %s cannot be reached", other.name)
		default:
			return p.world.transfer(p, other, bytes)
		}
	}
	return nil
}

// deliveredBy is the measurement of the bytes that another party delivers.
func (p *process) deliveredBy(from *process) *tally.Peer {
	if p.delivered[from.name] == nil {
		p.delivered[from.name] = &tally.Peer{}
	}
	return p.delivered[from.name]
}

// ByteScale is how many times their bytes blobs take on links, where what is trained stands for something larger. Zero
// is once.
type ByteScale struct {
	Job     float64 // what the job ships, without its first checkpoint
	Weights float64 // checkpoints, and the states that units carry
	Updates float64 // and their parts
}

// fetch gets a blob from the own store or from the first holder that has it, in the time of its bytes times a factor,
// and keeps it.
func (p *process) fetch(ctx context.Context, c blob.CID, holders []string, times float64) ([]byte, error) {
	if b, err := p.store.Get(ctx, c); err == nil {
		return b, nil
	}
	w := p.world
	for _, h := range holders {
		from := w.at[h]
		if from == nil || from == p {
			continue
		}
		if err := w.clock.Sleep(p.link.Delay(w.random, 0)); err != nil {
			return nil, err
		}
		if !from.up || w.cuts.apart(p, from) {
			continue
		}
		b, err := from.store.Get(ctx, c)
		if err != nil {
			continue
		}
		if err := w.transfer(from, p, int(cmp.Or(times, 1)*float64(len(b)))); err != nil {
			return nil, err
		}
		if !from.up || w.cuts.apart(p, from) {
			continue
		}
		_, err = p.store.Put(context.WithoutCancel(ctx), b) // a fetch that is cut off loses nothing that has arrived
		return b, err
	}
	return nil, fmt.Errorf("sim: no party has %s: %w", c, blob.ErrNotFound)
}

// blobs implements party.Blobs, and engine.Peers.
type blobs struct {
	process *process
	times   float64 // their bytes that they take
}

// A blob that its holder has not published yet is asked for again, as a node does.
const (
	askAgain = 100 * time.Millisecond
	askFor   = 20 * time.Second
)

// Await implements party.Blobs.
func (b blobs) Await(ctx context.Context, c blob.CID, holders []string) (data []byte, err error) {
	clock := &b.process.world.clock
	for until := clock.Now + askFor; ; {
		if data, err = b.process.fetch(ctx, c, holders, b.times); err == nil || clock.Now >= until || ctx.Err() != nil {
			return data, err
		}
		if err := clock.Sleep(askAgain); err != nil {
			return nil, err
		}
	}
}

// Relay implements party.Blobs.
func (b blobs) Relay(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return b.Await(ctx, c, holders)
}

// Fetch implements party.Blobs.
func (b blobs) Fetch(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return b.process.fetch(ctx, c, holders, b.times)
}

// Has implements party.Blobs.
func (b blobs) Has(ctx context.Context, c blob.CID) (bool, error) { return b.process.store.Has(ctx, c) }

// Put implements party.Blobs.
func (b blobs) Put(ctx context.Context, data []byte) (blob.CID, error) {
	return b.process.store.Put(ctx, data)
}

// Each implements party.Blobs.
func (b blobs) Each(n int, do func(i int)) {
	if n == 0 {
		return
	}
	p, next, working := b.process, 0, min(n, link.AtOnce)
	err := p.world.clock.Wait(func(wake func()) {
		for range working {
			p.spawn(func(context.Context) {
				for next < n {
					i := next
					next++
					do(i)
				}
				if working--; working == 0 {
					p.world.clock.After(0, wake)
				}
			})
		}
	})
	if err != nil {
		panic(err) // killed with the process, as the calls are: there is nothing to continue with
	}
}
