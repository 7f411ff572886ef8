package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtcfg "github.com/cometbft/cometbft/config"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/proxy"
	"github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/store"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/chain/app"
)

// ErrBegins is returned if the first blocks are not in the folder: the validator began with a snapshot of the state,
// not with the first block.
var ErrBegins = errors.New("chain: the first blocks are not here")

// Replayed is the result of executing blocks again.
type Replayed struct {
	ChainID   string     `json:"chain_id"`
	From      int64      `json:"from"` // heights
	To        int64      `json:"to"`
	Txs       int        `json:"transactions"`
	Different *Otherwise `json:"different,omitempty"` // nil: every state has the hash that the validators agreed on
}

// Otherwise is a block whose state has another hash than the validators agreed on. The next block contains the agreed
// hash.
type Otherwise struct {
	Height   int64  `json:"height"`
	Agreed   string `json:"agreed"` // hashes of the application
	Replayed string `json:"replayed"`
}

// Replay executes the blocks of the stopped validator in a folder again, from the genesis on, in a separate
// application, and compares the application hash after each block with the hash that the validators agreed on. It ends
// at the height until (0: the last height whose hash is known) or at the first difference. It changes nothing in the
// folder. It calls each after every block. It returns ErrBegins if the first blocks are missing.
func Replay(ctx context.Context, home string, until int64, each func(height, last int64)) (r Replayed, err error) {
	doc, err := cmttypes.GenesisDocFromFile(filepath.Join(home, "config", "genesis.json"))
	if err != nil {
		return r, fmt.Errorf("chain: %w", err)
	}
	history, err := openHistory(Config{Home: home}.comet())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, history.close()) }()
	last, err := history.states.Load()
	if err != nil {
		return r, fmt.Errorf("chain: %w", err)
	}
	r = Replayed{ChainID: doc.ChainID, From: doc.InitialHeight, To: doc.InitialHeight - 1}
	switch base := history.blocks.Base(); {
	case last.LastBlockHeight == 0:
		return r, fmt.Errorf("%w: %s", ErrNoState, home)
	case base > doc.InitialHeight:
		return r, fmt.Errorf("%w: they begin at %d, the chain at %d", ErrBegins, base, doc.InitialHeight)
	case until == 0 || until > last.LastBlockHeight:
		until = last.LastBlockHeight
	}
	stage, leave, err := newStage(doc)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	for height := doc.InitialHeight; height <= until; height++ {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		block := history.blocks.LoadBlock(height)
		if block == nil {
			return r, fmt.Errorf("%w: block %d", ErrLost, height)
		}
		got, err := state.ExecCommitBlock(stage, block, cmtlog.NewNopLogger(), history.states, doc.InitialHeight)
		if err != nil {
			return r, fmt.Errorf("chain: block %d: %w", height, err)
		}
		agreed := []byte(last.AppHash)
		if height < last.LastBlockHeight {
			agreed = history.blocks.LoadBlockMeta(height + 1).Header.AppHash
		}
		r.To, r.Txs = height, r.Txs+len(block.Txs)
		if a, b := hex.EncodeToString(agreed), hex.EncodeToString(got); a != b {
			r.Different = &Otherwise{height, a, b}
			return r, nil
		}
		each(height, until)
	}
	return r, nil
}

// history is the blocks and states that a validator has stored.
type history struct {
	blocks *store.BlockStore
	states state.Store // with the validator set of every height
}

func openHistory(cfg *cmtcfg.Config) (h history, err error) {
	blocks, err := cmtcfg.DefaultDBProvider(&cmtcfg.DBContext{ID: "blockstore", Config: cfg})
	if err != nil {
		return h, fmt.Errorf("chain: %w: is the validator running?", err)
	}
	states, err := cmtcfg.DefaultDBProvider(&cmtcfg.DBContext{ID: "state", Config: cfg})
	if err != nil {
		return h, errors.Join(fmt.Errorf("chain: %w: is the validator running?", err), blocks.Close())
	}
	return history{store.NewBlockStore(blocks), state.NewStore(states, state.StoreOptions{})}, nil
}

func (h history) close() error { return errors.Join(h.blocks.Close(), h.states.Close()) }

// newStage returns an application at the genesis of a chain, and a function that removes the application again.
func newStage(doc *cmttypes.GenesisDoc) (proxy.AppConnConsensus, func() error, error) {
	dir, err := os.MkdirTemp("", "starling-replay-")
	if err != nil {
		return nil, nil, fmt.Errorf("chain: %w", err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	db, err := dbm.NewDB("application", dbm.GoLevelDBBackend, dir)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("chain: %w", err), remove())
	}
	a, err := app.New(log.NewNopLogger(), db, app.Config{ChainID: doc.ChainID, Home: dir})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("chain: %w", err), db.Close(), remove())
	}
	conns := proxy.NewAppConns(Calls(a), proxy.NopMetrics())
	leave := func() error { return errors.Join(conns.Stop(), a.Close(), remove()) }
	if err := conns.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("chain: %w", err), a.Close(), remove())
	}
	if err := begin(conns.Consensus(), doc); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("chain: the genesis: %w", err), leave())
	}
	return conns.Consensus(), leave, nil
}

// begin initializes an application with its genesis, as CometBFT does.
func begin(a proxy.AppConnConsensus, doc *cmttypes.GenesisDoc) error {
	validators := make([]*cmttypes.Validator, len(doc.Validators))
	for i, v := range doc.Validators {
		validators[i] = cmttypes.NewValidator(v.PubKey, v.Power)
	}
	params := doc.ConsensusParams.ToProto()
	_, err := a.InitChain(context.Background(), &abci.RequestInitChain{
		Time: doc.GenesisTime, ChainId: doc.ChainID, InitialHeight: doc.InitialHeight, ConsensusParams: &params,
		Validators: cmttypes.TM2PB.ValidatorUpdates(cmttypes.NewValidatorSet(validators)), AppStateBytes: doc.AppState,
	})
	return err
}
