package dashboard

import (
	"log/slog"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/tuning"
	"github.com/starling-network/starling/web"
)

// Source is where a command finds jobs: at a server, else on a network, else in a folder.
type Source struct {
	API     string // address of a server
	Token   string // that it wants; "": none
	Network string // HTTP interface of a validator
	Dir     string // folder of runs, or of one
	Data    string // folder of data, with the files of examples that are kept in it

	Log *slog.Logger // for errors in this process; nil: none are logged
}

// Open returns a client of the place. Of a network and of a folder it is that of the API in this process, which reads
// there what a server would: who asks gets the same answers. The caller calls done.
func (p Source) Open() (c *rest.Client, done func(), err error) {
	if p.API != "" {
		c, err = rest.New(p.API, p.Token)
		return c, func() {}, err
	}
	config := web.Config{Log: p.Log}
	done = func() {}
	if p.Network != "" {
		chain, err := client.Connect(p.Network, wallet.KeyFromSeed([32]byte{})) // it signs nothing
		if err != nil {
			return nil, nil, err
		}
		view := &ChainView{Address: p.Network, Chain: chain}
		config.Network, config.Runs, done = view, &ChainRuns{View: view}, chain.Close
	} else if config.Runs, err = p.folder(); err != nil {
		return nil, nil, err
	}
	if p.Data != "" {
		config.Files = tuning.NewExampleStore(p.Data)
	}
	s := web.New(config)
	closeChain := done
	return rest.Of(s), func() { s.Stop(); closeChain() }, nil
}

func (p Source) folder() (*runs.RunStore, error) {
	if p.Dir == "" {
		return runs.One(p.Data) // no run is asked for
	}
	return runs.Open(p.Dir)
}
