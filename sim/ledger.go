// Package sim plays a whole network under virtual time: the real chain application, the real roles, the real engine and
// real signatures, on one event heap. What a seed draws is latency, loss, speed, crashes and who lies; the same seed
// gives the same run, event by event.
//
// Its tests tell a story for every adversary and play random mixes of them; `go test ./sim -run 'Mix$' -seeds 1000` is
// the long form, and a failure prints the command that replays its seed.
//
// It is a laboratory and a test bench. Processes, sockets and CometBFT are node's.
package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	"github.com/cometbft/cometbft/libs/protoio"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
)

// ledger is the chain without its network: the real application over a database in memory, and the keys of all
// validators, which agree at once. Every block passes PrepareProposal, ProcessProposal, FinalizeBlock and Commit, and
// carries the signed vote extensions that make its beacon.
type ledger struct {
	db         dbm.DB
	config     app.Config
	app        *app.App
	chainID    string
	start      time.Time
	validators []chain.Keys
	withhold   map[int]bool       // validators whose votes carry no proof
	absent     map[int]bool       // validators that do not vote; not the first
	evidence   []abci.Misbehavior // for the next block

	height     int64
	commit     abci.ExtendedCommitInfo // of the votes on block height
	appHash    []byte
	mempool    [][]byte
	beacon     canon.Digest // of block height
	events     []abci.Event // of block height
	connection *connection
	queries    *client.Client

	decided *abci.RequestFinalizeBlock  // the latest
	done    *abci.ResponseFinalizeBlock // of it
	// puts another application in the place of one that cannot execute a block; nil: nobody can
	mend    func(error) error
	witness func() // told of every block that is executed; nil: nobody
}

// newLedger starts a chain at a virtual time. referee opens the work of orders; nil: as every network does.
func newLedger(doc *cmttypes.GenesisDoc, validators []chain.Keys, referee works.Referee) (*ledger, error) {
	first := validators[0]
	db := dbm.NewMemDB()
	config := app.Config{SyncPruning: true, Referee: referee, ChainID: doc.ChainID,
		Validator: app.Validator{Address: first.Consensus.PubKey().Address(), VRF: first.VRF}}
	a, err := app.New(log.NewNopLogger(), db, config)
	if err != nil {
		return nil, err
	}
	params := doc.ConsensusParams.ToProto()
	r, err := a.InitChain(&abci.RequestInitChain{
		ChainId: doc.ChainID, Time: doc.GenesisTime, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: doc.AppState,
	})
	if err != nil {
		return nil, err
	}
	conn := &connection{app: a, known: map[string]*abci.ResponseQuery{}}
	return &ledger{
		db: db, config: config, connection: conn, app: a, chainID: doc.ChainID, start: doc.GenesisTime,
		validators: validators, withhold: map[int]bool{}, absent: map[int]bool{}, appHash: r.AppHash,
		queries: client.New(conn, wallet.KeyFromSeed([32]byte{})),
	}, nil
}

// included is what became of a transaction: executed in a block, or refused since.
type included struct {
	tx     []byte
	result *abci.ExecTxResult
}

// check asks whether a transaction may wait for a block.
func (l *ledger) check(tx []byte) (*abci.ResponseCheckTx, error) {
	if len(tx) > chain.MaxTxBytes {
		return nil, fmt.Errorf("sim: a transaction of %d bytes, the mempool takes %d", len(tx), chain.MaxTxBytes)
	}
	r, err := l.app.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_New})
	if err == nil && r.Code == 0 {
		l.mempool = append(l.mempool, tx)
	}
	return r, err
}

// block makes the next block from what waits, at a virtual time.
func (l *ledger) block(ctx context.Context, now time.Duration) ([]included, error) {
	height, at := l.height+1, l.start.Add(now)
	proposer := l.validators[int(height)%len(l.validators)].Consensus.PubKey().Address()
	p, err := l.app.PrepareProposal(&abci.RequestPrepareProposal{
		MaxTxBytes: chain.MaxBlockBytes - 1<<16, Txs: l.mempool, LocalLastCommit: l.commit, Height: height, Time: at,
		ProposerAddress: proposer,
	})
	if err != nil {
		return nil, err
	}
	hash := cmttypes.ToTxs(p.Txs).Hash()
	ok, err := l.app.ProcessProposal(&abci.RequestProcessProposal{
		Txs: p.Txs, ProposedLastCommit: plain(l.commit), Hash: hash, Height: height, Time: at, ProposerAddress: proposer,
	})
	if err != nil || ok.Status != abci.ResponseProcessProposal_ACCEPT {
		return nil, errors.Join(fmt.Errorf("sim: the proposal of block %d is refused", height), err)
	}
	votes, err := l.vote(ctx, height, hash)
	if err != nil {
		return nil, err
	}
	l.decided = &abci.RequestFinalizeBlock{
		Txs: p.Txs, DecidedLastCommit: plain(l.commit), Misbehavior: l.evidence, Hash: hash, Height: height, Time: at,
		ProposerAddress: proposer,
	}
	l.evidence = nil
	done, err := l.app.FinalizeBlock(l.decided)
	if err != nil && l.mend != nil {
		if err = l.mend(err); err == nil {
			done, err = l.app.FinalizeBlock(l.decided)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := l.app.Commit(); err != nil {
		return nil, err
	}
	clear(l.connection.known)
	l.height, l.commit, l.appHash, l.done = height, votes, done.AppHash, done
	if l.beacon, err = l.queries.Ledger.Beacon(ctx, height); err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, err
	}
	l.events = done.Events
	var in []included
	for i, tx := range p.Txs {
		waiting := slices.IndexFunc(l.mempool, func(t []byte) bool { return bytes.Equal(t, tx) })
		if waiting >= 0 {
			l.mempool = slices.Delete(l.mempool, waiting, waiting+1)
			in = append(in, included{tx, done.TxResults[i]})
			l.events = append(l.events, done.TxResults[i].Events...)
		}
	}
	l.mempool = slices.DeleteFunc(l.mempool, func(tx []byte) bool {
		r, err := l.app.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_Recheck})
		if err != nil || r.Code == 0 {
			return false
		}
		in = append(in, included{tx, &abci.ExecTxResult{Code: r.Code, Codespace: r.Codespace, Log: r.Log}})
		return true
	})
	if l.witness != nil {
		l.witness()
	}
	return in, faultless(l.events)
}

// faultless refuses the events of a block in which a run was left as it was, because a rule failed: on a network it
// would stand still from then on.
func faultless(events []abci.Event) error {
	for _, e := range events {
		if e.Type == "starling.training.v1.EventFault" {
			return fmt.Errorf("sim: a rule failed: %v", e.Attributes)
		}
	}
	return nil
}

// vote makes the extended commit of a block, as the application of each validator would extend its vote.
func (l *ledger) vote(ctx context.Context, height int64, hash []byte) (abci.ExtendedCommitInfo, error) {
	c := abci.ExtendedCommitInfo{}
	for i, k := range l.validators {
		address := k.Consensus.PubKey().Address()
		power := abci.Validator{Address: address, Power: chain.SelfStake / 1_000_000}
		if l.absent[i] {
			c.Votes = append(c.Votes, abci.ExtendedVoteInfo{Validator: power, BlockIdFlag: cmtproto.BlockIDFlagAbsent})
			continue
		}
		extended, err := l.app.ExtendVoteOf(ctx, app.Validator{Address: address, VRF: k.VRF},
			&abci.RequestExtendVote{Height: height, Hash: hash})
		if err != nil {
			return c, err
		}
		extension := extended.VoteExtension
		if l.withhold[i] {
			extension = nil
		}
		r, err := l.app.VerifyVoteExtension(&abci.RequestVerifyVoteExtension{Height: height, Hash: hash,
			ValidatorAddress: address, VoteExtension: extension})
		if err != nil || r.Status != abci.ResponseVerifyVoteExtension_ACCEPT {
			return c, errors.Join(fmt.Errorf("sim: the vote of validator %d on block %d is refused", i, height), err)
		}
		signed, err := protoio.MarshalDelimited(&cmtproto.CanonicalVoteExtension{Extension: extension, Height: height,
			ChainId: l.chainID})
		if err != nil {
			return c, err
		}
		signature, err := k.Consensus.Sign(signed)
		if err != nil {
			return c, err
		}
		c.Votes = append(c.Votes, abci.ExtendedVoteInfo{
			Validator: power, VoteExtension: extension,
			ExtensionSignature: signature, BlockIdFlag: cmtproto.BlockIDFlagCommit,
		})
	}
	slices.SortFunc(c.Votes, func(a, b abci.ExtendedVoteInfo) int {
		return bytes.Compare(a.Validator.Address,
			b.Validator.Address)
	})
	return c, nil
}

// plain is a commit without its extensions.
func plain(c abci.ExtendedCommitInfo) abci.CommitInfo {
	out := abci.CommitInfo{Round: c.Round}
	for _, v := range c.Votes {
		out.Votes = append(out.Votes, abci.VoteInfo{Validator: v.Validator, BlockIdFlag: v.BlockIdFlag})
	}
	return out
}

// connection answers queries at the latest block. It is all that a client.Client of the simulator needs of CometBFT.
// What was asked since the block is not computed again: every party asks for the same.
type connection struct {
	rpcclient.Client
	app   *app.App
	known map[string]*abci.ResponseQuery
}

// ABCIQueryWithOptions implements rpcclient.Client.
func (c *connection) ABCIQueryWithOptions(ctx context.Context, path string, data cmtbytes.HexBytes,
	_ rpcclient.ABCIQueryOptions) (*ctypes.ResultABCIQuery, error) {
	key := path + string(data)
	if r, ok := c.known[key]; ok {
		return &ctypes.ResultABCIQuery{Response: *r}, nil
	}
	r, err := c.app.Query(ctx, &abci.RequestQuery{Path: path, Data: data})
	if err != nil {
		return nil, err
	}
	c.known[key] = r
	return &ctypes.ResultABCIQuery{Response: *r}, nil
}

// balances of all accounts that hold coins, in uzen.
func (l *ledger) balances(ctx context.Context) (map[string]uint64, error) {
	conn := sdkclient.Context{}.WithClient(l.connection).WithCodec(l.app.Codec).WithInterfaceRegistry(l.app.Registry)
	r, err := banktypes.NewQueryClient(conn).DenomOwners(ctx, &banktypes.QueryDenomOwnersRequest{
		Denom: adapter.Denom, Pagination: &query.PageRequest{Limit: 10_000},
	})
	if err != nil {
		return nil, err
	}
	held := map[string]uint64{}
	for _, o := range r.DenomOwners {
		held[o.Address] = o.Balance.Amount.Uint64()
	}
	return held, nil
}
