package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cosmossdk.io/log/v2"
	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/chain/app"
)

// ErrNoState is returned for a folder whose validator has made no block.
var ErrNoState = errors.New("chain: the folder holds no block")

// Export returns the state of the stopped validator in the folder home, as the genesis of a chain that continues at the
// next height. Runs, disputes and votes under way continue. Blocks and transactions stay with the old chain. It returns
// ErrNoState if the validator has made no block.
func Export(home string) (*cmttypes.GenesisDoc, error) {
	doc, err := cmttypes.GenesisDocFromFile(filepath.Join(home, "config", "genesis.json"))
	if err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	cfg := Config{Home: home}.comet()
	last, err := lastState(cfg)
	if err != nil {
		return nil, err
	}
	if last.LastBlockHeight == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoState, home)
	}
	if doc.AppState, err = exportState(cfg, doc.ChainID, last.LastBlockHeight); err != nil {
		return nil, err
	}
	doc.InitialHeight, doc.GenesisTime, doc.Validators = last.LastBlockHeight+1, last.LastBlockTime, nil
	doc.ConsensusParams = &last.ConsensusParams
	// the first block of the chain has the first vote extensions
	doc.ConsensusParams.ABCI.VoteExtensionsEnableHeight = doc.InitialHeight
	return doc, doc.ValidateAndComplete()
}

// lastState is the state that CometBFT has stored after the latest block.
func lastState(cfg *cmtcfg.Config) (state.State, error) {
	h, err := openHistory(cfg)
	if err != nil {
		return state.State{}, err
	}
	s, err := h.states.Load()
	return s, errors.Join(err, h.close())
}

func exportState(cfg *cmtcfg.Config, chainID string, height int64) (raw json.RawMessage, err error) {
	db, err := dbm.NewDB("application", dbm.GoLevelDBBackend, cfg.DBDir())
	if err != nil {
		return nil, fmt.Errorf("chain: %w: is the validator running?", err)
	}
	a, err := app.New(log.NewNopLogger(), db, app.Config{ChainID: chainID})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("chain: %w", err), db.Close())
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if a.LastBlockHeight() != height {
		return nil, fmt.Errorf("chain: the state is of height %d and the blocks of height %d: start the validator once, "+
			"and stop it", a.LastBlockHeight(), height)
	}
	return a.Export()
}

// Import writes a genesis, such as Export returns, to the folder of a validator, and moves the chain that the folder
// holds out of the way. It keeps the validator's keys and its record of signed votes. It returns the folder of the old
// chain; "" if there was none.
func Import(home string, doc *cmttypes.GenesisDoc) (aside string, err error) {
	if err := doc.ValidateAndComplete(); err != nil {
		return "", fmt.Errorf("chain: %w", err)
	}
	cfg := Config{Home: home}.comet()
	for _, folder := range []string{filepath.Dir(cfg.GenesisFile()), cfg.DBDir()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", fmt.Errorf("chain: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(cfg.DBDir(), "application.db")); err == nil {
		if aside, err = setAside(cfg); err != nil {
			return "", err
		}
		if err := os.Rename(cfg.GenesisFile(), filepath.Join(aside, "genesis.json")); err != nil {
			return "", fmt.Errorf("chain: %w", err)
		}
	}
	return aside, keep(doc, cfg.GenesisFile())
}

// keep writes a genesis atomically.
func keep(doc *cmttypes.GenesisDoc, file string) error {
	partial := file + ".partial"
	if err := doc.SaveAs(partial); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	return os.Rename(partial, file)
}
