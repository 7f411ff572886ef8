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

// DefaultSnapshotEvery is the number of blocks from one snapshot of the state to the next, of a validator that takes
// some.
const DefaultSnapshotEvery = 1000

// keptSnapshots are the latest that stay. Whoever has begun to fetch one may end while the next is taken.
const keptSnapshots = 2

// Sync says how a validator that has no blocks yet gets the state of its chain: from a snapshot of another validator,
// checked against headers that lead to it from a block that its operator trusts. Without it the blocks are executed
// from the first on.
type Sync struct {
	Servers []string `json:"servers"` // HTTP interfaces that headers come from, such as http://10.0.0.7:26601
	Height  int64    `json:"height"`  // of the block that is trusted
	Hash    string   `json:"hash"`    // its own, hexadecimal
}

// trusted is how long a block stays a ground for trust: less than it takes validators to take their stake back, after
// which nothing punishes them for signing another history.
const trusted = 7 * 24 * time.Hour

// comet is the configuration of CometBFT.
func (s *Sync) comet() *cmtcfg.StateSyncConfig {
	cfg := cmtcfg.DefaultStateSyncConfig()
	if s == nil || len(s.Servers) == 0 {
		return cfg
	}
	cfg.Enable, cfg.TrustPeriod = true, trusted
	cfg.TrustHeight, cfg.TrustHash = s.Height, s.Hash
	cfg.RPCServers = s.Servers
	if len(s.Servers) == 1 { // CometBFT wants a witness
		cfg.RPCServers = append(cfg.RPCServers, s.Servers...)
	}
	cfg.DiscoveryTime = 5 * time.Second // the least that it takes
	return cfg
}

// snapshots are where the state is kept whole for validators that come later, or put together by one of these; nil for
// a validator that does neither.
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

// snapshotPoll is how often a validator that stops looks whether its snapshot is taken.
const snapshotPoll = 20 * time.Millisecond

// finishSnapshot waits for a snapshot under way of a state at a height: the SDK panics when the database is closed
// under it. A state at height 0 may be under restoration, which ends only with chunks that nobody brings any more.
func finishSnapshot(m *snapshots.Manager, height int64) {
	for m != nil && height > 0 {
		if _, err := m.Prune(keptSnapshots); !errors.Is(err, storetypes.ErrConflict) {
			return
		}
		time.Sleep(snapshotPoll)
	}
}
