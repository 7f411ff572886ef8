package chain

import (
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abcicli "github.com/cometbft/cometbft/abci/client"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtsync "github.com/cometbft/cometbft/libs/sync"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/server"

	"github.com/starling-network/starling/chain/app"
)

// Executing a block holds the lock of CometBFT's calls. Queries neither wait for that lock nor hold it.
func TestQueriesDoNotTakeTheTurnOfConsensus(t *testing.T) {
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), app.Config{ChainID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var turn cmtsync.Mutex
	c := caller{abcicli.NewLocalClient(&turn, server.NewCometABCIWrapper(a)), a}
	turn.Lock()
	defer turn.Unlock()
	for _, path := range []string{"/app/version", "/app/simulate"} {
		answered := make(chan error, 1)
		go func() {
			_, err := c.Query(t.Context(), &abci.RequestQuery{Path: path})
			answered <- err
		}()
		select {
		case err := <-answered:
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for a block", path)
		}
	}
}
