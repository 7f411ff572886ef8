// Package money measures parts of the market of models: the work of a fair exchange, answers of hosted models through a
// gateway, and many adapters over one base. Proofs, contests and chains of other kinds have benches of their own. It is
// the engine of starling bench money.
package money

import (
	"context"
	"fmt"
	"os"

	"github.com/starling-network/starling/node/benchmark"
)

// Options say how much is measured.
type Options struct {
	Threads  int
	Bytes    int // of the files that are exchanged
	Width    int // of the model with adapters
	Layers   int
	Tokens   int // of an answer
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
	Hosting  Hosting         `json:"hosting"`
	Adapters Adapters        `json:"adapters"`
	Bars     []benchmark.Bar `json:"bars"`
}

// Limits of the bars.
const (
	exchangeSeconds = 2 // for 100 MB
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
	o.Progress("answers through a gateway")
	if r.Hosting, err = hosted(ctx, dir, o); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("%d adapters over one base", adapters))
	if r.Adapters, err = adapted(ctx, dir, o); err != nil {
		return nil, err
	}
	x, h, a := r.Exchange, r.Hosting, r.Adapters
	r.Bars = []benchmark.Bar{
		benchmark.AtMost("seconds of an exchange of 100 MB next to the transfer",
			(x.Seal+x.Check+x.Unseal)*100e6/float64(x.Bytes), exchangeSeconds),
		benchmark.AtLeast("tokens a second through a gateway, of those of the local server", h.Gateway/h.Local,
			hostingRatio),
		benchmark.AtMost("requests lost while a provider ends", float64(h.Lost), 0),
		benchmark.AtLeast("texts that another provider continued", float64(h.Failovers), 1),
		benchmark.AtLeast("throughput of 16 adapters over one base, of a server of one after another",
			a.InTurn/a.Together, adaptersRatio),
	}
	return r, nil
}
