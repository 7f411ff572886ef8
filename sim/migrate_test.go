package sim

import (
	"bytes"
	"encoding/json"
	"testing"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/ledger"
)

// imported is an application that begins with the exported state of another, at its next height.
func imported(t *testing.T, l *ledger.Ledger) *app.App {
	t.Helper()
	state := must(l.App.Export())(t)
	a := must(app.New(log.NewNopLogger(), dbm.NewMemDB(), l.Config))(t)
	params := l.App.GetConsensusParams(must(l.App.CreateQueryContext(l.Height, false))(t))
	_, err := a.InitChain(&abci.RequestInitChain{
		ChainId: l.ChainID, Time: l.Decided.Time, InitialHeight: l.Height + 1, ConsensusParams: &params, AppStateBytes: state,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// modules are the exported states of the modules of an application.
func modules(t *testing.T, a *app.App) (m map[string]json.RawMessage) {
	t.Helper()
	state := must(a.Export())(t)
	if err := json.Unmarshal(state, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A chain whose state is exported and imported again at any height of a run continues as if nothing had happened: it
// executes the same blocks to the same results, and what it then exports is the same.
func TestExportLosesNothing(t *testing.T) {
	for _, at := range []int64{2, 9, 22} {
		if at != 9 && !*long {
			continue
		}
		w := must(New(small(t), check.CoinsConserved{}))(t)
		l := w.ledger
		var other *app.App
		l.Witness = func() {
			if l.Height < at {
				return
			}
			if l.Height == at {
				other = imported(t, l)
				return
			}
			r := must(other.FinalizeBlock(l.Decided))(t)
			must(other.Commit())(t)
			if !bytes.Equal(canon.MustMarshal(outcomes(r)), canon.MustMarshal(outcomes(l.Done))) {
				t.Errorf("imported after block %d: block %d has other results", at, l.Height)
			}
			if l.Height != at+1 && l.Height%9 != 0 {
				return
			}
			before, after := modules(t, l.App), modules(t, other)
			for name := range before {
				if !bytes.Equal(before[name], after[name]) {
					t.Errorf("imported after block %d: %s differs after block %d:\n%s\n%s", at, name, l.Height, before[name],
						after[name])
				}
			}
		}
		if _, err := w.Play(); err != nil {
			t.Fatal(err)
		}
		if other == nil || l.Height < at+10 {
			t.Errorf("the run was over too early, at block %d", l.Height)
		}
	}
}

// outcomes are the results of transactions, and the events of the block.
func outcomes(r *abci.ResponseFinalizeBlock) (list [][]byte) {
	for _, tx := range r.TxResults {
		list = append(list, must1(tx.Marshal()))
	}
	for _, e := range r.Events {
		list = append(list, must1(e.Marshal()))
	}
	return list
}

func must1(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// The memory of an application outside its store changes nothing: one that forgets everything after every block makes
// the same state, to the last bit.
func TestForgettingChangesNothing(t *testing.T) {
	onlyLong(t)
	w := must(New(small(t), check.CoinsConserved{}))(t)
	l := w.ledger
	db := dbm.NewMemDB()
	open := func() *app.App { return must(app.New(log.NewNopLogger(), db, l.Config))(t) }
	var first json.RawMessage
	var initial int64
	begin := func(a *app.App) {
		params := l.App.GetConsensusParams(must(l.App.CreateQueryContext(l.Height, false))(t))
		must(a.InitChain(&abci.RequestInitChain{
			ChainId: l.ChainID, Time: l.Decided.Time, InitialHeight: initial, ConsensusParams: &params, AppStateBytes: first,
		}))(t)
	}
	var warm *app.App // it remembers, and began where the other did
	l.Witness = func() {
		if warm == nil {
			first, initial = must(l.App.Export())(t), l.Height+1
			warm = must(app.New(log.NewNopLogger(), dbm.NewMemDB(), l.Config))(t)
			begin(warm)
			return
		}
		cold := open()
		if cold.LastBlockHeight() == 0 {
			begin(cold)
		}
		a, b := must(cold.FinalizeBlock(l.Decided))(t), must(warm.FinalizeBlock(l.Decided))(t)
		must(cold.Commit())(t)
		must(warm.Commit())(t)
		if !bytes.Equal(a.AppHash, b.AppHash) {
			t.Fatalf("block %d: the application hash is %x, and %x after forgetting", l.Height, b.AppHash, a.AppHash)
		}
	}
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
}
