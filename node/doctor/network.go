package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
)

// askTimeout is how long a validator or a peer may take to answer.
const askTimeout = 10 * time.Second

// head asks the validator of the options where it stands.
func head(ctx context.Context, o Options) (ledger.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := client.Connect(o.Network, wallet.KeyFromSeed([32]byte{}))
	if err != nil {
		return ledger.Head{}, err
	}
	defer c.Close()
	return c.Ledger.Head(ctx)
}

const noNetwork = "not looked at: no network was named"

// chain asks whether the network can be reached, is the right one, makes blocks and runs the same program.
func chain(ctx context.Context, o Options) Finding {
	if o.Network == "" {
		return Finding{Level: OK, Text: noNetwork}
	}
	h, err := head(ctx, o)
	if stopped, ok := errors.AsType[*endpoint.Halted](err); ok {
		return Finding{Level: Fail, Text: o.Network + " is stopped: " + stopped.Error(),
			Fix: stopped.Fix + ", or name another validator with --network"}
	}
	if err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "start the validator, open its HTTP port in its firewall, or " +
			"name another with --network"}
	}
	return chainAt(h, o)
}

func chainAt(h ledger.Head, o Options) Finding {
	f := Finding{Level: OK, Text: fmt.Sprintf("%s answers: %s at height %d, %s", o.Network, h.ChainID, h.Height, h.App)}
	switch {
	case h.App != wire.Version:
		f.Level, f.Fix = Fail, fmt.Sprintf("use the binary that the network uses: it judges by %s, this one computes %s",
			h.App, wire.Version)
	case o.ChainID != "" && h.ChainID != o.ChainID:
		f.Level, f.Fix = Fail, fmt.Sprintf("name a validator of %s with --network: this one is of another chain", o.ChainID)
	case h.Height < 1:
		f.Level, f.Fix = Fail, "wait until the chain has a block: more than two thirds of the validators have to run"
	case h.CatchingUp:
		f.Level, f.Fix = Warn, "wait until the validator has caught up with the others, or name another with --network"
	}
	return f
}

// maxSkew is how far a clock may be from the time of a block, in addition to the age that a block may have.
const (
	maxSkew = 10 * time.Second
	maxAge  = 2 * time.Minute
)

// clock compares the clock of this machine with the time that the validators agreed on for the latest block.
func clock(ctx context.Context, o Options) Finding {
	if f := clockAt(time.Now()); f.Level != OK || o.Network == "" {
		return f
	}
	h, err := head(ctx, o)
	if err != nil || h.Height < 1 {
		return clockAt(time.Now()) // the check of the chain says more
	}
	return clockBeside(time.Now(), h.Time)
}

func clockBeside(now, block time.Time) Finding {
	f := clockAt(now)
	switch ahead := now.Sub(block); {
	case ahead < -maxSkew:
		f.Level, f.Text = Fail, fmt.Sprintf("this clock is %s behind the latest block", (-ahead).Round(time.Second))
		f.Fix = "set the clock, best by NTP: a validator with such a clock holds the others up"
	case ahead > maxAge:
		f.Level, f.Text = Warn, fmt.Sprintf("the latest block is %s old by this clock", ahead.Round(time.Second))
		f.Fix = "set the clock, best by NTP, if it is wrong; if it is right the chain stands still: see starling network " +
			"status"
	default:
		f.Text += fmt.Sprintf(", %s after the latest block", max(ahead, 0).Round(100*time.Millisecond))
	}
	return f
}

// listen opens a host at the addresses that a worker is to be reached at, and dials it there from another host.
func listen(ctx context.Context, o Options) Finding {
	if len(o.Listen) == 0 {
		return Finding{Level: OK, Text: "not looked at: no address was named"}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	there, err := host(o.Listen...)
	if err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "free the port (another process may have it), or name an " +
			"address of this machine with --listen"}
	}
	defer there.Close()
	here, err := host()
	if err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "allow programs to listen on the loopback interface"}
	}
	defer here.Close()
	addrs := there.Addrs()
	if len(addrs) == 0 {
		return Finding{Level: Fail, Text: fmt.Sprintf("%v stands for no address of this machine", o.Listen),
			Fix: "name an address of this machine with --listen"}
	}
	for _, a := range addrs {
		if err := here.Connect(ctx, a); err != nil {
			return Finding{Level: Fail, Text: fmt.Sprintf("%s is listened on and cannot be reached: %v", a, err),
				Fix: "open the port in the firewall of this machine"}
		}
	}
	return Finding{Level: OK, Text: fmt.Sprintf("%v can be bound, and reached from this machine", o.Listen)}
}

func host(listen ...string) (*peer.Host, error) {
	key, err := peer.GenerateKey()
	if err != nil {
		return nil, err
	}
	return peer.New(peer.Config{Key: key, Store: blob.NewMemory(), Listen: listen})
}
