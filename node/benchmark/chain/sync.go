package chain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/internal/loopback"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/flood"
)

// A chain that a new node joins: its accounts, the blocks from one snapshot to the next, and the blocks that it has
// by then.
const (
	joinAccounts  = 10_000
	snapshotEvery = 20
	joinHeight    = 50
)

// joining is how long a new validator takes, in seconds, from its start to the first block that it executes itself,
// when it fetches the state of another one of the same machine over the loopback. CometBFT looks for snapshots for five
// of them.
func joining(ctx context.Context) (seconds float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "starling-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	old := chain.Config{Home: filepath.Join(dir, "old"), ChainID: "bench", BlockTime: 50 * time.Millisecond,
		SnapshotEvery: snapshotEvery}
	keys, err := identity.MakeKeys(old.Home)
	if err != nil {
		return 0, err
	}
	var accounts []chain.Funded
	for i := range joinAccounts {
		d := canon.Sum("bench/registered", binary.LittleEndian.AppendUint64(nil, uint64(i)))
		accounts = append(accounts, chain.Funded{Address: sdk.AccAddress(d[:20]).String(), Amount: 1})
	}
	if old.Genesis, err = chain.Genesis(old.ChainID, time.Now(), []identity.Keys{keys}, accounts); err != nil {
		return 0, err
	}
	port, release, err := loopback.Reserve(3)
	if err != nil {
		return 0, err
	}
	defer release()
	old.Listen, old.RPC = fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port+1)
	v, err := chain.Start(ctx, old)
	if err != nil {
		return 0, err
	}
	_, err = flood.Reaches(ctx, v, joinHeight)
	if v.Stop(); err != nil {
		return 0, err
	}
	old.SnapshotEvery = 1 << 20 // more of them would take the place of the one that is fetched: blocks are that short here
	if v, err = chain.Start(ctx, old); err != nil {
		return 0, err
	}
	defer v.Stop()
	trusted := int64(snapshotEvery)
	block, err := v.Client().Commit(ctx, &trusted)
	if err != nil {
		return 0, err
	}
	fresh := chain.Config{
		Home: filepath.Join(dir, "new"), ChainID: old.ChainID, BlockTime: old.BlockTime, Genesis: old.Genesis,
		Listen: fmt.Sprintf("127.0.0.1:%d", port+2), Peers: []string{keys.NodeID() + "@" + old.Listen},
		Sync: &chain.Sync{Servers: []string{"http://" + old.RPC}, Height: trusted, Hash: block.Hash().String()},
	}
	start := time.Now()
	w, err := chain.Start(ctx, fresh)
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	if _, err := flood.Reaches(ctx, w, joinHeight); err != nil {
		return 0, err
	}
	took := time.Since(start)
	s, err := w.Client().Status(ctx)
	if err == nil && s.SyncInfo.EarliestBlockHeight < snapshotEvery {
		err = fmt.Errorf("benchmark: the new validator has the blocks from %d on: it took no snapshot",
			s.SyncInfo.EarliestBlockHeight)
	}
	return benchmark.Rounded(took.Seconds(), 2), err
}
