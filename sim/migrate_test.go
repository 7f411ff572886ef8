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
)

// imported is an application that begins with the exported state of another, at its next height.
func imported(t *testing.T, l *ledger) *app.App {
	t.Helper()
	state := must(l.app.Export())(t)
	a := must(app.New(log.NewNopLogger(), dbm.NewMemDB(), l.config))(t)
	params := l.app.GetConsensusParams(must(l.app.CreateQueryContext(l.height, false))(t))
	_, err := a.InitChain(&abci.RequestInitChain{
		ChainId: l.chainID, Time: l.decided.Time, InitialHeight: l.height + 1, ConsensusParams: &params, AppStateBytes: state,
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

// A chain whose state is exported and imported again at any height of a run goes on as if nothing had happened: it
// executes the same blocks to the same results, and what it then exports is the same.
func TestExportLosesNothing(t *testing.T) {
	for _, at := range []int64{2, 9, 22} {
		w := must(New(small(t), CoinsConserved{}))(t)
		l := w.ledger
		var other *app.App
		l.witness = func() {
			if l.height < at {
				return
			}
			if l.height == at {
				other = imported(t, l)
				return
			}
			r := must(other.FinalizeBlock(l.decided))(t)
			must(other.Commit())(t)
			if !bytes.Equal(canon.MustMarshal(outcomes(r)), canon.MustMarshal(outcomes(l.done))) {
				t.Errorf("imported after block %d: block %d has other results", at, l.height)
			}
			if l.height != at+1 && l.height%9 != 0 {
				return
			}
			before, after := modules(t, l.app), modules(t, other)
			for name := range before {
				if !bytes.Equal(before[name], after[name]) {
					t.Errorf("imported after block %d: %s differs after block %d:\n%s\n%s", at, name, l.height, before[name],
						after[name])
				}
			}
		}
		if _, err := w.Play(); err != nil {
			t.Fatal(err)
		}
		if other == nil || l.height < at+10 {
			t.Errorf("the run was over too early, at block %d", l.height)
		}
	}
}

// outcomes are what transactions came to, and the events of the block.
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

// What an application remembers beside its store changes nothing: one that forgets everything after every block makes
// the same state, to the last bit.
func TestForgettingChangesNothing(t *testing.T) {
	w := must(New(small(t), CoinsConserved{}))(t)
	l := w.ledger
	db := dbm.NewMemDB()
	open := func() *app.App { return must(app.New(log.NewNopLogger(), db, l.config))(t) }
	var first json.RawMessage
	var initial int64
	begin := func(a *app.App) {
		params := l.app.GetConsensusParams(must(l.app.CreateQueryContext(l.height, false))(t))
		must(a.InitChain(&abci.RequestInitChain{
			ChainId: l.chainID, Time: l.decided.Time, InitialHeight: initial, ConsensusParams: &params, AppStateBytes: first,
		}))(t)
	}
	var warm *app.App // it remembers, and began where the other did
	l.witness = func() {
		if warm == nil {
			first, initial = must(l.app.Export())(t), l.height+1
			warm = must(app.New(log.NewNopLogger(), dbm.NewMemDB(), l.config))(t)
			begin(warm)
			return
		}
		cold := open()
		if cold.LastBlockHeight() == 0 {
			begin(cold)
		}
		a, b := must(cold.FinalizeBlock(l.decided))(t), must(warm.FinalizeBlock(l.decided))(t)
		must(cold.Commit())(t)
		must(warm.Commit())(t)
		if !bytes.Equal(a.AppHash, b.AppHash) {
			t.Fatalf("block %d: the application hash is %x, and %x for who forgets", l.height, b.AppHash, a.AppHash)
		}
	}
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
}
