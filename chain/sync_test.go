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

// A node that stops while it fetches the state of its chain waits for no snapshot: nobody will end what it restores.
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
	if _, err := m.RestoreChunk(chunk); err == nil { // ends what writes into the directory of the test
		t.Fatal("a chunk that holds no state restores one")
	}
}
