package chain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	cmtcfg "github.com/cometbft/cometbft/config"
)

// ErrLost is returned when a validator without peers has lost blocks that its state was made of, or more than one
// state: the disk lost data that it had confirmed as written.
var ErrLost = errors.New("chain: a part of it is lost")

// checkStores compares the heights of the stores in a folder with that of the application. A state that is one behind
// its blocks catches up by itself: that is where a validator may be killed. If the application has executed the last
// block by then, the state needs what it answered.
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

// setAside moves the chain in a folder out of the way, so that the validator fetches it again, and returns where it is.
// What the validator has signed stays: it signs nothing twice.
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
	// The application comes last: until then another start finds the same, and does it again.
	for _, name := range []string{"blockstore.db", "state.db", "evidence.db", "cs.wal", "application.db"} {
		err := os.Rename(filepath.Join(cfg.DBDir(), name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("chain: %w", err)
		}
	}
	return aside, nil
}
