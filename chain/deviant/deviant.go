// Package deviant holds validators that break the rules, for tests on networks of processes. Each wraps the application
// of an honest validator and differs from it in one deviation.
//
// Participants of runs that break the rules are in role/adversary.
package deviant

import (
	"context"
	"maps"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/wire"
	_ "github.com/starling-network/starling/chain/wire/ibc" // its messages
	"github.com/starling-network/starling/chain/x/training/trainingpb"
)

// named are the deviations by name.
var named = map[string]struct {
	act   func(against []string) (func(abci.Application) abci.Application, error)
	about string
}{
	"withholds": {
		func([]string) (func(abci.Application) abci.Application, error) { return withhold, nil },
		"says nothing in its votes once it holds shares of the beacon's key: no signature for the beacon, no moves",
	},
	"censors": {
		censor,
		"leaves the moves of some accounts in disputes out of every block that it proposes",
	},
}

// Names lists the deviations, sorted.
func Names() []string { return slices.Sorted(maps.Keys(named)) }

// About describes the deviation with a name; "" if there is none.
func About(name string) string { return named[name].about }

// Named returns a function that wraps the application of a validator in the deviation with a name. against are the
// accounts that the deviation is directed against.
func Named(name string, against []string) (func(abci.Application) abci.Application, error) {
	return named[name].act(against)
}

// groupSigns is a height at which the group signs the beacon. Before it the validator takes part in making the key.
const groupSigns = 30

func withhold(honest abci.Application) abci.Application { return withholder{honest} }

type withholder struct{ abci.Application }

// ExtendVote implements abci.Application.
func (w withholder) ExtendVote(ctx context.Context, r *abci.RequestExtendVote) (*abci.ResponseExtendVote, error) {
	if r.Height < groupSigns {
		return w.Application.ExtendVote(ctx, r)
	}
	return &abci.ResponseExtendVote{}, nil
}

func censor(against []string) (func(abci.Application) abci.Application, error) {
	e, err := wire.NewEncoding()
	return func(honest abci.Application) abci.Application { return &censorship{honest, against, e.Tx.TxDecoder()} }, err
}

type censorship struct {
	abci.Application
	against []string
	decode  sdk.TxDecoder
}

// PrepareProposal implements abci.Application.
func (c *censorship) PrepareProposal(ctx context.Context,
	r *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	p, err := c.Application.PrepareProposal(ctx, r)
	if err == nil {
		p.Txs = slices.DeleteFunc(p.Txs, c.leaves)
	}
	return p, err
}

// leaves reports whether the proposer leaves out a transaction.
func (c *censorship) leaves(raw []byte) bool {
	tx, err := c.decode(raw)
	if err != nil {
		return false // as vote extensions, which are no transactions
	}
	return slices.ContainsFunc(tx.GetMsgs(), func(m sdk.Msg) bool {
		move, ok := m.(*trainingpb.MsgMove)
		return ok && slices.Contains(c.against, move.Sender)
	})
}
