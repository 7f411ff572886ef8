package chain

import (
	"crypto/sha256"
	"testing"

	"cosmossdk.io/log/v2"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	"github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"
)

// A node that stops while it restores the state of its chain does not wait: the restoration cannot end.
func TestNobodyWaitsForARestore(t *testing.T) {
	store, err := snapshots.NewStore(dbm.NewMemDB(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := snapshots.NewManager(store, types.NewSnapshotOptions(1, keptSnapshots),
		rootmulti.NewStore(dbm.NewMemDB(), log.NewNopLogger()), nil, log.NewNopLogger())
	chunk := []byte("no state")
	hash := sha256.Sum256(chunk)
	err = m.Restore(types.Snapshot{Height: 5, Format: types.CurrentFormat, Chunks: 1,
		Metadata: types.Metadata{ChunkHashes: [][]byte{hash[:]}}})
	if err != nil {
		t.Fatal(err)
	}
	finishSnapshot(m, 0)
	if _, err := m.RestoreChunk(chunk); err == nil { // ends the goroutine that writes to the test's directory
		t.Fatal("a chunk that holds no state restores one")
	}
}
