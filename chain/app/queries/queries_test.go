package queries

import (
	"errors"
	"testing"
	"testing/synctest"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
)

type stored struct{ storetypes.MultiStore }

func (stored) LatestVersion() int64 { return 7 }

// Before the first commit, Store asks the store below it, which knows the height restored from disk or from a snapshot.
func TestStoreKnowsTheLatestBlock(t *testing.T) {
	s := &Store{MultiStore: stored{}}
	if h := s.LatestVersion(); h != 7 {
		t.Errorf("height %d before a block", h)
	}
	if s.Committed(9); s.LatestVersion() != 9 {
		t.Errorf("height %d after block 9", s.LatestVersion())
	}
}

// A query waits for a free place, and is refused after the timeout.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(Turns, 1)
		back, err := turns.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turns.Take(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("no place is free: %v", err)
		}
		back()
		if _, err := turns.Take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
