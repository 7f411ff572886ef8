// Package money measures parts of the market of models: the work of a fair exchange, answers of hosted models through a
// gateway, and many adapters over one base. Proofs, contests and chains of other kinds have benches of their own. It is
// the engine of starling bench money.
package money

import (
	"context"
	"fmt"
	"os"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/protocol/sale"
)

// Options say how much is measured.
type Options struct {
	Threads  int
	Bytes    int // of the files that are exchanged
	Width    int // of the model with adapters
	Layers   int
	Tokens   int // of an answer
	Leaves   int // that a proof of a sale opens
	Requests int // of each side of the comparison of hosting
	Progress func(string)
}

// Exchange is the work of a fair exchange next to the transfer, in seconds by the clock.
type Exchange struct {
	Bytes  int     `json:"bytes"`
	Seal   float64 `json:"seal"`   // the seller encrypts, once for all buyers
	Check  float64 `json:"check"`  // the buyer compares the encrypted files with the offer, before it pays
	Unseal float64 `json:"unseal"` // the buyer decrypts, and compares each leaf
}

// Proven is the work of a proof about drawn leaves of a sale, in seconds by the clock.
type Proven struct {
	Leaves int     `json:"leaves"` // that are opened
	Bytes  int     `json:"bytes"`  // of the keys and the proof
	Setup  float64 `json:"setup"`  // keys of proofs, by one party, once for all sales
	Seal   float64 `json:"seal"`   // ten times as many leaves, with a key for each
	Open   float64 `json:"open"`   // the seller makes the proof, once for all buyers
	Check  float64 `json:"check"`  // the buyer verifies it and decrypts the leaves, before it pays
}

// Hosting compares answers through a gateway, of three providers on this machine, with those of a server of the model
// itself.
type Hosting struct {
	Tokens    int     `json:"tokens"`             // of an answer
	Local     float64 `json:"local_per_second"`   // tokens of the server
	Gateway   float64 `json:"gateway_per_second"` // tokens through the gateway
	Requests  int     `json:"requests"`           // while a provider ends in the middle of a text
	Lost      int     `json:"lost"`               // of them: without an answer, or with another text than the model writes
	Failovers int     `json:"failovers"`          // texts that another provider continued
}

// Adapters compares texts of many adapters at once over one base with a server of one adapter after another, which
// has about the same memory.
type Adapters struct {
	Adapters   int     `json:"adapters"`
	Parameters int     `json:"parameters"` // of the base
	Tokens     int     `json:"tokens"`     // of the text of each adapter
	Together   float64 `json:"together"`   // seconds, with the time to load the base and all adapters
	InTurn     float64 `json:"in_turn"`    // seconds, with the time to load the base and each adapter
}

// Report is the outcome.
type Report struct {
	Exchange Exchange        `json:"exchange"`
	Proven   Proven          `json:"proven"`
	Hosting  Hosting         `json:"hosting"`
	Adapters Adapters        `json:"adapters"`
	Bars     []benchmark.Bar `json:"bars"`
}

// Limits of the bars.
const (
	exchangeSeconds = 2 // for 100 MB
	provenSeconds   = 5 // for a MiB of drawn leaves, of both sides
	hostingRatio    = 0.9
	adaptersRatio   = 5
)

// Measure measures one part after another, with files in a temporary folder.
func Measure(ctx context.Context, o Options) (r *Report, err error) {
	dir, err := os.MkdirTemp("", "starling-money-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if gone := os.RemoveAll(dir); err == nil {
			err = gone
		}
	}()
	r = &Report{}
	o.Progress(fmt.Sprintf("an exchange of %d MB", o.Bytes/1_000_000))
	if r.Exchange, err = exchange(ctx, dir, o.Bytes); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("a proof about %d drawn leaves", o.Leaves))
	if r.Proven, err = proven(ctx, dir, o.Leaves); err != nil {
		return nil, err
	}
	o.Progress("answers through a gateway")
	if r.Hosting, err = hosted(ctx, dir, o); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("%d adapters over one base", adapters))
	if r.Adapters, err = adapted(ctx, dir, o); err != nil {
		return nil, err
	}
	x, p, h, a := r.Exchange, r.Proven, r.Hosting, r.Adapters
	mib := float64(p.Leaves) * sale.LeafBytes / (1 << 20)
	r.Bars = []benchmark.Bar{
		benchmark.AtMost("seconds of an exchange of 100 MB next to the transfer",
			(x.Seal+x.Check+x.Unseal)*100e6/float64(x.Bytes), exchangeSeconds),
		benchmark.AtMost("seconds of a proof about a MiB of drawn leaves", (p.Open+p.Check)/mib, provenSeconds),
		benchmark.AtLeast("tokens a second through a gateway, of those of the local server", h.Gateway/h.Local,
			hostingRatio),
		benchmark.AtMost("requests lost while a provider ends", float64(h.Lost), 0),
		benchmark.AtLeast("texts that another provider continued", float64(h.Failovers), 1),
		benchmark.AtLeast("throughput of 16 adapters over one base, of a server of one after another",
			a.InTurn/a.Together, adaptersRatio),
	}
	return r, nil
}
