package bridged

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/starling-network/starling/client/bridge"
	"github.com/starling-network/starling/sim/random/draw"
)

var (
	long   = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "make 1,000 blocks")
	seed   = flag.Int64("seed", 2, "of the random choices")
	blocks = flag.Int64("blocks", 0, "of each chain once the bridge is open, at least; 0: 16, and 1,000 with -long")
)

var start = time.Unix(1_000_000_000, 0).UTC()

// play is one play of a seed.
type play struct {
	draw.Source
	t       *testing.T
	ctx     context.Context
	now     time.Duration
	shores  [2]*shore
	killing bool
	sending bool
	kills   map[string]int // by moment
	ends    map[string]int // of packets
	sent    map[string]int
	broken  int
}

func (p *play) must(err error) {
	if err != nil {
		p.t.Helper()
		p.t.Fatalf("seed %d: %v", *seed, err)
	}
}

func (p *play) fail(format string, about ...any) {
	p.t.Helper()
	p.t.Fatalf("seed %d: %s", *seed, fmt.Sprintf(format, about...))
}

func (p *play) count(r *abci.ExecTxResult) {
	if r.Code == 0 {
		p.sent["executed"]++
	} else {
		p.sent["refused"]++
	}
}

// tick lets time pass until a chain has a block more. The other makes blocks at times of its own.
func (p *play) tick(s *shore) {
	p.now += time.Duration(p.UpTo(500, 3_000)) * time.Millisecond
	made := []*shore{s}
	if p.Often(60) || p.now-s.other.last > 6*time.Second {
		made = append(made, s.other)
	}
	for _, m := range made {
		if p.sending {
			for range 1 + p.Intn(4) {
				p.say(m)
			}
		}
		m.block()
	}
}

// rounds relays until both chains have a number of blocks.
func (p *play) rounds(until int64) {
	r, a, b := p.start()
	found := false
	for p.shores[0].Height < until || p.shores[1].Height < until {
		if r.ctx.Err() != nil {
			p.tick(p.shores[p.Intn(2)]) // until it starts again
			r, a, b = p.start()
			found = false
		}
		if !found {
			if err := bridge.Find(r.ctx, a, b, p.shores[0].channel); err != nil {
				p.broke(r, err)
				continue
			}
			found = true
		}
		forth, err := bridge.Relay(r.ctx, a, b)
		p.broke(r, err)
		back, err := bridge.Relay(r.ctx, b, a)
		p.broke(r, err)
		if forth+back == 0 {
			p.tick(p.shores[p.Intn(2)])
		}
	}
	r.cancel()
}

// broke counts an error of a relay that was not killed. It tries again.
func (p *play) broke(r *relay, err error) {
	if err != nil && r.ctx.Err() == nil {
		p.broken++
		p.t.Log(err)
	}
}

// bridged opens the bridge, with relays that are killed meanwhile, until one has opened it.
func (p *play) bridged() {
	for {
		r, a, b := p.start()
		err := bridge.Open(r.ctx, a, b)
		r.cancel()
		if err == nil {
			p.shores[0].channel, p.shores[1].channel = a.End.Channel, b.End.Channel
			return
		}
		p.broke(r, err)
		p.tick(p.shores[p.Intn(2)])
	}
}

// Two chains, whose applications and whose relay are killed at any moment, have the same blocks as applications that
// never are, and in each block of either as many coins as the model says: of each coin that crosses the bridge, as much
// is in escrow on its chain as there are vouchers on the other and in packets on their way.
func TestCoinsAreConservedUnderKills(t *testing.T) {
	until := *blocks
	if until == 0 {
		if until = 16; *long {
			until = 1_000
		}
	}
	p := &play{Source: draw.Source{Rand: rand.New(rand.NewSource(*seed))}, t: t, ctx: t.Context(),
		kills: map[string]int{}, ends: map[string]int{}, sent: map[string]int{}}
	first := bridge.End{Channel: "channel-0"}
	p.shores[0] = open(t, p, "alpha", "beta", first.Voucher(issued("beta").Denom))
	p.shores[1] = open(t, p, "beta", "alpha", first.Voucher(issued("alpha").Denom))
	p.shores[0].other, p.shores[1].other = p.shores[1], p.shores[0]
	for range 2 {
		for _, s := range p.shores {
			p.now += time.Second
			s.block()
		}
	}
	p.killing = *long
	p.bridged()
	p.killing, p.sending = true, true
	p.rounds(max(p.shores[0].Height, p.shores[1].Height) + until)
	p.killing, p.sending = false, false
	for more := 0; p.open() > 0 && more < 40; more++ {
		p.rounds(min(p.shores[0].Height, p.shores[1].Height) + 5)
	}
	sent := len(p.shores[0].model.packets) + len(p.shores[1].model.packets)
	for _, m := range []map[string]int{p.kills, p.ends, p.sent} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			t.Log(k, m[k])
		}
	}
	fmt.Printf("seed %d: %d and %d blocks, %d packets, %d tries of the relay failed, ends in %X and %X\n", *seed,
		p.shores[0].Height, p.shores[1].Height, sent, p.broken, p.shores[0].AppHash, p.shores[1].AppHash)
	if n := p.open(); n > 0 {
		t.Errorf("%d packets of %d have no end", n, sent)
	}
	if int64(sent) < until/8 || len(p.kills) < 4 {
		t.Errorf("%d packets, kills %v", sent, p.kills)
	}
}

// open is how many packets wait for the relay.
func (p *play) open() (n int) {
	for _, s := range p.shores {
		for _, one := range s.model.packets {
			if !one.done {
				n++
			}
		}
	}
	return n
}
