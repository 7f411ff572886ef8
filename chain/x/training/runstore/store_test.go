package runstore

import (
	"errors"
	"fmt"
	"testing"

	"cosmossdk.io/collections"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// empty returns a Store over an empty store, and its context.
func empty(t *testing.T) (*Store, sdk.Context) {
	t.Helper()
	service, ctx := storetest.Open(t, "training")
	b := collections.NewSchemaBuilder(service)
	s := New(b)
	if _, err := b.Build(); err != nil {
		t.Fatal(err)
	}
	return s, ctx
}

// lapOf returns a round with a number of units, each with a handed state and a commitment.
func lapOf(round, units uint32) work.RoundState {
	l := work.RoundState{
		Round: round,
		Base:  terms.Checkpoint{Round: round, Root: canon.Sum("base"), CID: cid("base", round)},
	}
	list := make([]work.Unit, units)
	for i := range list {
		c := work.Commitment{
			Segments: make([]canon.Digest, 5), UpdateCID: cid("update", uint32(i)), Log: cid("log", uint32(i)),
		}
		list[i] = work.Unit{Index: uint32(i), Status: work.Committed, Worker: cid("worker", uint32(i)%100), Commit: c}
		l.From = append(l.From, work.HandedState{Root: canon.Sum("carried"), CID: cid("carried", uint32(i))})
	}
	l.Units = work.Shared(list)
	return l
}

func cid(what string, i uint32) string { return fmt.Sprintf("%s-%052d", what, i) }

// stateOf returns a run with a number of open rounds, and one round that was rolled back.
func stateOf(open, units uint32) run.State {
	s := run.State{
		Progress: progress.Progress{
			Crew:   crew.Crew{Terms: terms.Terms{Job: "job", Units: units, Sizes: make([]uint32, units)}},
			Window: work.Window{RoundState: lapOf(open+3, units)},
		},
	}
	for i := range open {
		s.Open = append(s.Open, lapOf(3+i, units))
	}
	s.RolledBack = []work.RoundState{lapOf(3+open/2, units)}
	for i := range uint32(100) {
		s.Members = append(s.Members, crew.Member{ID: cid("member", i), Role: crew.Worker, Active: true})
	}
	s.Votes = []progress.Vote{{Member: "a"}}
	s.Probations = []progress.Probation{{Member: "b"}}
	s.LatestFinal = progress.ProbationTask{Worker: "c"}
	return s
}

// committed returns a state after a commitment to one unit of the current round.
func committed(s run.State) run.State {
	s.RoundState.Units = append(work.Units(nil), s.RoundState.Units...)
	u := *s.RoundState.Units[3]
	u.Commit.Update, u.Took = canon.Sum("update"), 7
	s.RoundState.Units[3] = &u
	s.Members = append([]crew.Member(nil), s.Members...)
	s.Members[3].Commits++
	s.TrainBlocks = append(append([]int64(nil), s.TrainBlocks...), 7)
	return s
}

// A Store with the state in memory and a Store without it read the state that was stored, whatever changed.
func TestStatesAreReadAsTheyWere(t *testing.T) {
	s, ctx := empty(t)
	first := stateOf(4, 10)
	second := committed(first)
	third := second // the oldest round is final, another begins, and the rolled back rounds are dropped
	third.Open = append(append([]work.RoundState(nil), second.Open[1:]...), second.RoundState)
	third.RoundState, third.RolledBack, third.Votes, third.Probations = work.RoundState{
		Round: second.Round + 1,
	}, nil, nil, nil
	fourth := third // rolled back to an earlier round
	fourth.RoundState, fourth.Open, fourth.RolledBack = third.Open[1], third.Open[:1], third.Open[2:]
	for i, state := range []run.State{first, second, third, fourth, first} {
		if err := s.Set(ctx, "job", state); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			read, err := s.Get(ctx, "job")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(state, read); diff != "" {
				t.Errorf("state %d: %s", i, diff)
			}
			s.latest = map[string]cachedRun{}
		}
	}
	if _, err := s.Get(ctx, "another"); !errors.Is(err, collections.ErrNotFound) {
		t.Errorf("of a run that is not there: %v", err)
	}
}

// A commitment costs the same gas in runs of ten and of a thousand units, with any number of open rounds.
func TestGasFollowsWhatChanges(t *testing.T) {
	var gas []uint64
	for _, c := range []struct{ open, units uint32 }{{1, 10}, {10, 20}, {2, 1000}, {15, 1000}} {
		s, ctx := empty(t)
		before := stateOf(c.open, c.units)
		if err := s.Set(ctx, "job", before); err != nil {
			t.Fatal(err)
		}
		meter := storetypes.NewInfiniteGasMeter()
		if err := s.Set(ctx.WithGasMeter(meter), "job", committed(before)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d units in %d rounds: %d gas", c.open*c.units+c.units, c.open+1, meter.GasConsumed())
		gas = append(gas, meter.GasConsumed())
	}
	for _, g := range gas {
		if g > gas[0]+gas[0]/10 {
			t.Errorf("commitments cost %v", gas)
			break
		}
	}
}
