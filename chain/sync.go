package chain

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	cmtcfg "github.com/cometbft/cometbft/config"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"

	"github.com/starling-network/starling/chain/app"
)

// DefaultSnapshotEvery is the number of blocks between two snapshots of the state, for a validator that takes
// snapshots.
const DefaultSnapshotEvery = 1000

// keptSnapshots is the number of latest snapshots that stay, so that a node can finish fetching one while the next is
// taken.
const keptSnapshots = 2

// Sync says how a validator without blocks gets the state of its chain: from a snapshot of another validator, checked
// against headers that lead to it from a block that its operator trusts. Without Sync the validator executes all blocks
// from the first on.
type Sync struct {
	Servers []string `json:"servers"` // HTTP interfaces that serve headers, such as http://10.0.0.7:26601
	Height  int64    `json:"height"`  // of the trusted block
	Hash    string   `json:"hash"`    // hash of the trusted block, hexadecimal
}

// trusted is how long a block may be trusted. It is shorter than the unbonding period of validators, after which
// signing another history is not punished.
const trusted = 7 * 24 * time.Hour

// comet returns the state sync configuration of CometBFT.
func (s *Sync) comet() *cmtcfg.StateSyncConfig {
	cfg := cmtcfg.DefaultStateSyncConfig()
	if s == nil || len(s.Servers) == 0 {
		return cfg
	}
	cfg.Enable, cfg.TrustPeriod = true, trusted
	cfg.TrustHeight, cfg.TrustHash = s.Height, s.Hash
	cfg.RPCServers = s.Servers
	if len(s.Servers) == 1 { // CometBFT requires a witness
		cfg.RPCServers = append(cfg.RPCServers, s.Servers...)
	}
	cfg.DiscoveryTime = 5 * time.Second // the least that CometBFT accepts
	return cfg
}

// snapshots opens the store of snapshots, for a validator that takes snapshots or restores one; nil for other
// validators.
func (c Config) snapshots(cfg *cmtcfg.Config) (*app.Snapshots, error) {
	if c.SnapshotEvery == 0 && c.Sync == nil {
		return nil, nil
	}
	dir := filepath.Join(cfg.DBDir(), "snapshots")
	db, err := dbm.NewDB("metadata", dbm.GoLevelDBBackend, dir)
	if err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	store, err := snapshots.NewStore(db, dir)
	if err != nil {
		_ = db.Close() // nothing was written
		return nil, fmt.Errorf("chain: %w", err)
	}
	return &app.Snapshots{Store: store, Interval: c.SnapshotEvery, Keep: keptSnapshots}, nil
}

// snapshotPoll is how often a stopping validator checks whether its snapshot is complete.
const snapshotPoll = 20 * time.Millisecond

// finishSnapshot waits until the snapshot of a state at a height is complete: the SDK panics if the database closes
// earlier. It does not wait at height 0: the state may be under restoration, and a stopped node receives no more
// chunks.
func finishSnapshot(m *snapshots.Manager, height int64) {
	for m != nil && height > 0 {
		if _, err := m.Prune(keptSnapshots); !errors.Is(err, storetypes.ErrConflict) {
			return
		}
		time.Sleep(snapshotPoll)
	}
}
