// Package check looks at a simulated network from outside, after every block and at its end: coins, stakes, payments
// and checkpoints are as the rules promise. It reads the network and changes nothing.
package check

import (
	"context"
	"strconv"
	"strings"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/sim/workload"
)

// Checker looks at a network from outside after every block, and at its end. An error says which promise is broken.
type Checker interface {
	Block(w World) error
	End(w World) error
}

// World is a network as a checker sees it.
type World interface {
	Run
	Chain() *client.Client                                   // reads the chain as everybody can
	Balances(ctx context.Context) (map[string]uint64, error) // of all accounts that hold coins, in uzen
	Genesis() Genesis
	Latest() Block
}

// Run is the only run of a network.
type Run interface {
	State() (run.State, error) // client.ErrNotFound before it begins
	Receipts() ([]reward.Receipt, error)
	Name(id string) string                                // of the party with an account
	Blob(ctx context.Context, c blob.CID) ([]byte, error) // from any party
}

// Genesis is how a network begins.
type Genesis struct {
	Job    *workload.Job // that is trained
	Minted uint64        // uzen that were made
	Stake  uint64        // uzen that each party has as stake
}

// Block is the latest one.
type Block struct {
	Height int64
	Now    time.Duration // virtual time since the start
	Events []abci.Event  // of the block and its transactions
	Still  bool          // it had no transactions
}

// quiet reports whether the latest block had no transactions, and the run no events in it.
func quiet(w World) bool { return w.Latest().Still && len(RunEvents(w)) == 0 }

// RunEvents are the events of the run in the latest block.
func RunEvents(w World) (events []event.Event) {
	for _, e := range w.Latest().Events {
		if e.Type != "starling.training.v1.EventRun" {
			continue
		}
		said := map[string]string{}
		for _, a := range e.Attributes {
			said[a.Key] = strings.Trim(a.Value, `"`) // JSON of strings and small numbers
		}
		round, _ := strconv.Atoi(said["round"])
		unit, _ := strconv.Atoi(said["unit"])
		events = append(events, event.Event{
			Kind: event.Kind(said["kind"]), Round: uint32(round), Unit: uint32(unit), Who: said["who"], Other: said["other"],
			Why: said["why"],
		})
	}
	return events
}
