// Package chain runs a validator of the chain in our own process: its keys, its genesis, its files, its start and its
// stop. The rules of the chain are chain/app, and its clients are client.
package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cosmossdk.io/log/v2"
	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtcfg "github.com/cometbft/cometbft/config"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	cmtstrings "github.com/cometbft/cometbft/libs/strings"
	"github.com/cometbft/cometbft/node"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	"github.com/cometbft/cometbft/rpc/client/local"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/rs/zerolog"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/clock"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/training/works"
)

// DefaultBlockTime is the time between two blocks of an embedded chain.
const DefaultBlockTime = 200 * time.Millisecond

// Governed is the value of Config.GasPrice that means the gas price set by governance.
const Governed = "governed"

// ErrOtherChain is returned when the folder of a validator holds another chain than Config.ChainID.
var ErrOtherChain = errors.New("chain: the folder holds another chain")

// Config says where and how a validator runs.
type Config struct {
	Home      string        // its folder: keys, genesis, blocks, state
	ChainID   string        // name of the chain
	Accounts  []Funded      // with coins from the first block; not read when Home already holds the chain
	BlockTime time.Duration // 0: DefaultBlockTime
	Seed      []byte        // 32 secret bytes for all keys; nil: made at the first start and kept in Home
	Full      bool          // follows the chain of its Peers and answers clients, and has no key of a validator
	Log       io.Writer     // log of errors; nil: none
	// whether CometBFT keeps metrics in the default registry of Prometheus; at most one validator of a process may
	Metrics bool
	Say     func(string) // receives messages for the operator; nil: none

	Genesis *cmttypes.GenesisDoc // of a chain with several validators; nil: a new chain with this validator alone
	Listen  string               // host:port for other validators; "": a free port of the loopback
	Peers   []string             // nodeID@host:port of other validators
	RPC     string               // host:port of the HTTP interface of CometBFT; "": none
	GRPC    string               // host:port of the gRPC interface of the application; "": none
	REST    string               // host:port of the same over HTTP with JSON; "": none

	SnapshotEvery uint64 // blocks between two snapshots of the state for nodes that join later; 0: none
	Sync          *Sync  // how a validator without blocks gets the state; nil: it executes the blocks of the others

	// GasPrice is what a transaction must pay to enter the pool of this validator, in uzen per unit of gas, as a decimal
	// number. If it is above 0, the price set by governance is the minimum. Governed: the price set by governance; "" and
	// 0: nothing.
	GasPrice string

	Deposits Deposits // sees deposits on other chains, which the votes report; nil: none

	Referee works.Referee // nil: the referee that recomputes; all validators of a chain have the same

	Act func(abci.Application) abci.Application // makes the validator break the rules, for tests; nil: it keeps them
}

// Deposits sees deposits on other chains.
type Deposits = payout.Watcher

// Validator is a running validator.
type Validator struct {
	keys identity.Keys
	node *node.Node
	app  *app.App
	rpc  *local.Local

	services  *services  // nil: none
	databases []cmtdb.DB // databases of the node

	// linger is how long Stop waits for CometBFT, in place of CometBFT (v0.39.4), which closes its files while the
	// routines of its peers still read them, and panics. It exceeds one turn of a routine; zero without peers.
	linger time.Duration

	stop sync.Once
}

// queryEvery is the pause of CometBFT between two questions to a peer. One turn has up to four pauses.
const queryEvery = 50 * time.Millisecond

// Start starts a validator. It returns after the first block, or, with Peers, as soon as the node runs. If Home holds a
// chain, the validator continues it. The validator runs until Stop or until ctx ends.
func Start(ctx context.Context, c Config) (*Validator, error) {
	if c.BlockTime == 0 {
		c.BlockTime = DefaultBlockTime
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	for _, folder := range []string{"config", "data"} {
		if err := os.MkdirAll(filepath.Join(c.Home, folder), 0o700); err != nil {
			return nil, fmt.Errorf("chain: %w", err)
		}
	}
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	v := &Validator{keys: keys}
	if c.Listen != "" || len(c.Peers) > 0 {
		v.linger = 6 * queryEvery
	}
	doc, err := c.genesis(v.keys)
	if err != nil {
		return nil, err
	}
	err = v.open(c, doc)
	if errors.Is(err, ErrLost) && len(c.Peers) > 0 {
		err = v.again(c, doc, err)
	}
	if err != nil {
		return nil, err
	}
	if len(c.Peers) == 0 && len(doc.Validators) <= 1 {
		if err := v.next(ctx); err != nil {
			v.Stop()
			return nil, err
		}
	}
	context.AfterFunc(ctx, v.Stop)
	return v, nil
}

// Client is the connection to the validator inside the process.
func (v *Validator) Client() rpcclient.Client { return v.rpc }

// Keys are the keys of the validator.
func (v *Validator) Keys() identity.Keys { return v.keys }

// Stop ends the validator and closes its files. Client does not work afterwards.
func (v *Validator) Stop() {
	v.stop.Do(func() {
		if err := v.services.stop(); err != nil {
			v.app.Logger().Error("chain: closing the ports", "error", err)
		}
		if v.node.IsRunning() {
			if v.linger > 0 {
				_ = v.node.Switch().Stop()
				time.Sleep(v.linger)
			}
			// Stop fails only if the node does not run.
			_ = v.node.Stop()
			v.node.Wait()
		}
		for _, db := range v.databases {
			_ = db.Close() // most are closed already
		}
		finishSnapshot(v.app.SnapshotManager(), v.app.LastBlockHeight())
		if err := v.app.Close(); err != nil {
			v.app.Logger().Error("chain: closing the application", "error", err)
		}
	})
}

// database opens a database of the node and records it: CometBFT (v0.39.4) does not close the database of transactions.
func (v *Validator) database(c *cmtcfg.DBContext) (cmtdb.DB, error) {
	db, err := cmtcfg.DefaultDBProvider(c)
	if err == nil {
		v.databases = append(v.databases, db)
	}
	return db, err
}

// again restarts a validator that has lost blocks: it sets the chain aside and fetches it from its peers.
func (v *Validator) again(c Config, doc *cmttypes.GenesisDoc, why error) error {
	aside, err := setAside(c.comet())
	if err != nil {
		return err
	}
	if c.Say != nil {
		c.Say(fmt.Sprintf("%v; fetching the whole chain from other validators; what was there is in %s", why, aside))
	}
	c.Sync = nil // the trusted block may be too old
	return v.open(c, doc)
}

// open starts the application, and CometBFT with it.
func (v *Validator) open(c Config, doc *cmttypes.GenesisDoc) error {
	cfg := c.comet()
	db, err := dbm.NewDB("application", dbm.GoLevelDBBackend, cfg.DBDir())
	if err != nil {
		return fmt.Errorf("chain: %w: is another process running over %s?", err, c.Home)
	}
	kept, err := c.snapshots(cfg)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	price, err := c.gasPrice()
	if err != nil {
		return errors.Join(err, db.Close())
	}
	logger := log.NewLogger(c.Log, log.LevelOption(zerolog.ErrorLevel), log.ColorOption(false))
	v.app, err = app.New(logger, db, app.Config{
		ChainID: doc.ChainID, Validator: c.voter(v.keys),
		Referee: c.Referee, Home: c.Home, Snapshots: kept, GasPrice: price, Deposits: c.Deposits,
		Governed: c.GasPrice == Governed || !price.IsZero(),
	})
	if err != nil {
		return errors.Join(fmt.Errorf("chain: %w", err), db.Close())
	}
	if err := checkStores(cfg, v.app.LastBlockHeight()); err != nil {
		return errors.Join(err, v.app.Close())
	}
	signer, err := c.signer(cfg, v.keys)
	if err != nil {
		return errors.Join(err, v.app.Close())
	}
	comet := cmtlog.NewFilter(withoutGoodbyes{cmtlog.NewTMLogger(cmtlog.NewSyncWriter(c.Log))}, cmtlog.AllowError())
	v.node, err = node.NewNode(cfg, signer, &p2p.NodeKey{PrivKey: v.keys.Node},
		c.calls(v.app),
		func() (*cmttypes.GenesisDoc, error) { return doc, nil },
		v.database, node.DefaultMetricsProvider(cfg.Instrumentation), comet)
	if err != nil {
		return errors.Join(fmt.Errorf("chain: %w", err), v.app.Close())
	}
	v.rpc = local.New(v.node)
	if err := v.prepare(c, doc.ChainID); err != nil {
		v.Stop()
		return fmt.Errorf("chain: %w", err)
	}
	if len(c.Peers) > 0 {
		latest := doc.GenesisTime
		if blocks := v.node.BlockStore(); blocks.Height() > 0 {
			latest = blocks.LoadBlockMeta(blocks.Height()).Header.Time
		}
		if err := clock.OnTime(time.Now(), latest); err != nil {
			v.Stop()
			return err
		}
	}
	if err := v.node.Start(); err != nil {
		v.Stop()
		return fmt.Errorf("chain: %w", err)
	}
	if err := v.serve(c, logger); err != nil {
		v.Stop()
		return err
	}
	return nil
}

// gasPrice is the validator's own price of a unit of gas; nil if it has none.
func (c Config) gasPrice() (sdk.DecCoins, error) {
	if c.GasPrice == "" || c.GasPrice == Governed {
		return nil, nil
	}
	price, err := sdk.ParseDecCoins(c.GasPrice + adapter.Denom)
	if err != nil {
		return nil, fmt.Errorf("chain: a price of gas is a decimal number of %s such as 0.001, not %q: %w", adapter.Denom,
			c.GasPrice, err)
	}
	return price, nil
}

// comet returns the configuration of CometBFT.
func (c Config) comet() *cmtcfg.Config {
	cfg := cmtcfg.DefaultConfig()
	cfg.SetRoot(c.Home)
	cfg.RPC.ListenAddress = ""
	if c.RPC != "" {
		cfg.RPC.ListenAddress = "tcp://" + c.RPC
		cfg.TxIndex.Indexer = "kv"
	} else {
		cfg.TxIndex.Indexer = "null"
	}
	cfg.RPC.CORSAllowedOrigins = []string{"*"} // wallets are web pages of other origins
	cfg.RPC.MaxBodyBytes = maxBody
	cfg.P2P.ListenAddress = "tcp://127.0.0.1:0"
	if c.Listen != "" {
		cfg.P2P.ListenAddress = "tcp://" + c.Listen
	}
	cfg.Moniker = c.name()
	cfg.P2P.PersistentPeers = strings.Join(c.Peers, ",")
	cfg.P2P.PexReactor = false
	cfg.P2P.AddrBookStrict = false
	cfg.P2P.AllowDuplicateIP = true
	cfg.Consensus.TimeoutCommit = c.BlockTime
	cfg.Consensus.PeerGossipSleepDuration = 10 * time.Millisecond
	cfg.Consensus.PeerQueryMaj23SleepDuration = queryEvery
	cfg.StateSync = c.Sync.comet()
	cfg.Mempool.Size = 50_000
	cfg.Mempool.CacheSize = 100_000
	cfg.Mempool.MaxTxBytes = MaxTxBytes
	cfg.Instrumentation.Prometheus = c.Metrics
	cfg.Instrumentation.PrometheusListenAddr = "" // the process serves them with its own metrics
	return cfg
}

// name is the name that other validators see: the name of the folder, if CometBFT can send that text.
func (c Config) name() string {
	home, err := filepath.Abs(c.Home)
	if name := filepath.Base(home); err == nil && cmtstrings.IsASCIIText(name) && strings.TrimSpace(name) != "" {
		return name
	}
	return "validator"
}

// voter returns the keys with which the application extends votes; none for a full node.
func (c Config) voter(keys identity.Keys) app.Validator {
	if c.Full {
		return app.Validator{}
	}
	return app.Validator{Address: keys.Consensus.PubKey().Address(), VRF: keys.VRF}
}

// signer holds the consensus key and stores the last vote on disk, so that the validator never signs two votes for one
// step, even if it is killed. CometBFT requires a key of a full node too: signer makes a new one at every start and
// does not store it.
func (c Config) signer(cfg *cmtcfg.Config, keys identity.Keys) (cmttypes.PrivValidator, error) {
	if c.Full {
		return privval.NewFilePV(cmted25519.GenPrivKey(), "", ""), nil
	}
	keyFile, stateFile := cfg.PrivValidatorKeyFile(), cfg.PrivValidatorStateFile()
	signer := privval.NewFilePV(keys.Consensus, keyFile, stateFile)
	// only our own file, which may be encrypted, holds the key
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("chain: %w", err)
	}
	kept, err := os.ReadFile(stateFile)
	switch last := &signer.LastSignState; {
	case errors.Is(err, fs.ErrNotExist):
		last.Save()
	case err != nil:
		return nil, fmt.Errorf("chain: %w", err)
	default:
		if err := cmtjson.Unmarshal(kept, last); err != nil {
			return nil, fmt.Errorf("chain: %s does not say what was signed last: %w", stateFile, err)
		}
	}
	return signer, nil
}

// next waits for a block.
func (v *Validator) next(ctx context.Context) error {
	const who = "start"
	query := cmttypes.QueryForEvent(cmttypes.EventNewBlock).String()
	blocks, err := v.rpc.Subscribe(ctx, who, query)
	if err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	defer func() { _ = v.rpc.Unsubscribe(context.WithoutCancel(ctx), who, query) }()
	select {
	case <-blocks:
		return nil
	case <-v.node.Quit():
		return errors.New("chain: the validator stopped before it made a block; its log says why")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keys returns the keys of c.Seed or, without a seed, of the secret in the folder, which the first start makes. A full
// node has only the key of its connections.
func (c Config) keys() (identity.Keys, error) {
	if c.Full {
		node, err := p2p.LoadOrGenNodeKey(filepath.Join(c.Home, "config", "node_key.json"))
		if err != nil {
			return identity.Keys{}, fmt.Errorf("chain: %w", err)
		}
		return identity.Keys{Node: node.PrivKey}, nil
	}
	if len(c.Seed) == 0 {
		return identity.MakeKeys(c.Home)
	}
	var seed [32]byte
	if len(c.Seed) != len(seed) {
		return identity.Keys{}, fmt.Errorf("chain: a seed has %d bytes, not %d", len(seed), len(c.Seed))
	}
	return identity.NewKeys([32]byte(c.Seed)), nil
}

// genesis returns the genesis in the folder, or else c.Genesis or a new one, and stores it: its time is part of the
// chain.
func (c Config) genesis(keys identity.Keys) (*cmttypes.GenesisDoc, error) {
	file := filepath.Join(c.Home, "config", "genesis.json")
	doc, err := cmttypes.GenesisDocFromFile(file)
	if err == nil {
		if c.ChainID != "" && doc.ChainID != c.ChainID {
			return nil, fmt.Errorf("%w: %s holds %q, not %q", ErrOtherChain, c.Home, doc.ChainID, c.ChainID)
		}
		return doc, nil
	}
	if _, missing := os.Stat(file); !errors.Is(missing, fs.ErrNotExist) {
		return nil, fmt.Errorf("chain: %w", err)
	}
	if doc = c.Genesis; doc == nil {
		if doc, err = Genesis(c.ChainID, time.Now(), []identity.Keys{keys}, c.Accounts); err != nil {
			return nil, err
		}
	}
	return doc, keep(doc, file)
}
