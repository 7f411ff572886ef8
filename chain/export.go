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

// Export is the state of the validator in a folder, which is stopped, as the genesis of a chain that goes on with the
// next height: nothing is lost, and what was under way goes on. Blocks and transactions stay with the old chain.
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
	// the first votes of the chain are for its first block
	doc.ConsensusParams.ABCI.VoteExtensionsEnableHeight = doc.InitialHeight
	return doc, doc.ValidateAndComplete()
}

// lastState is what CometBFT knows of the latest block.
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

// Import puts a genesis, such as Export makes, in the folder of a validator, and sets aside the chain that it holds.
// Keys stay, and so does what the validator has signed. It returns where the old chain is; "" if there was none.
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

// keep writes a genesis at once or not at all.
func keep(doc *cmttypes.GenesisDoc, file string) error {
	partial := file + ".partial"
	if err := doc.SaveAs(partial); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	return os.Rename(partial, file)
}
