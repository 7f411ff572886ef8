package chain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	cmtcfg "github.com/cometbft/cometbft/config"
)

// ErrLost is returned when a validator has lost blocks that its state was made from, or more than one state: the disk
// lost data that it had confirmed as written.
var ErrLost = errors.New("chain: a part of it is lost")

// checkStores compares the heights of the stores in a folder with the height of the application, and returns ErrLost if
// the validator cannot recover by itself. A state one height behind the blocks is normal after a kill, and CometBFT
// replays the block. If the application has executed that block, the replay needs the stored response of the
// application.
func checkStores(cfg *cmtcfg.Config, application int64) error {
	h, err := openHistory(cfg)
	if err != nil {
		return err
	}
	height := h.blocks.Height()
	s, err := h.states.Load()
	_, unanswered := h.states.LoadLastFinalizeBlockResponse(height)
	if err := errors.Join(err, h.close()); err != nil {
		return err
	}
	made, behind := max(application, s.LastBlockHeight), height > s.LastBlockHeight
	if made > height || height > s.LastBlockHeight+1 || behind && application == height && unanswered != nil {
		return fmt.Errorf("%w: the blocks end at %d, the state at %d, the application at %d: restore %s from a copy",
			ErrLost, height, s.LastBlockHeight, application, cfg.DBDir())
	}
	return nil
}

// setAside moves the chain in a folder out of the way, so that the validator fetches the chain again, and returns the
// new folder. The record of signed votes stays, so that the validator signs nothing twice.
func setAside(cfg *cmtcfg.Config) (string, error) {
	var aside string
	for n := 1; ; n++ {
		aside = filepath.Join(cfg.DBDir(), fmt.Sprintf("lost-%d", n))
		err := os.Mkdir(aside, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("chain: %w", err)
		}
	}
	// The application is moved last: if the process stops before that, the next start finds the same loss and repeats
	// this.
	for _, name := range []string{"blockstore.db", "state.db", "evidence.db", "cs.wal", "application.db"} {
		err := os.Rename(filepath.Join(cfg.DBDir(), name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("chain: %w", err)
		}
	}
	return aside, nil
}
