// Package ledger is the chain of a simulated network without CometBFT: the real application, and the keys of all
// validators, which agree at once. It has no clock: the caller says when a block is made.
package ledger

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
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
)

// Ledger is the chain without its network: the real application over a database in memory, and the keys of all
// validators, which agree at once. Every block passes PrepareProposal, ProcessProposal, FinalizeBlock and Commit, and
// carries the signed vote extensions that make its beacon.
type Ledger struct {
	DB         dbm.DB
	Config     app.Config // of App
	App        *app.App
	ChainID    string
	Start      time.Time
	Validators []identity.Keys
	Withhold   map[int]bool       // validators whose votes carry no proof
	Absent     map[int]bool       // validators that do not vote; not the first
	Evidence   []abci.Misbehavior // for the next block

	Height     int64
	Commit     abci.ExtendedCommitInfo // of the votes on block height
	AppHash    []byte
	Mempool    [][]byte
	beacon     canon.Digest // of block height
	Events     []abci.Event // of block Height
	Connection rpcclient.Client
	Queries    *client.Client

	answers map[string]*abci.ResponseQuery // to queries since the latest block
	Decided *abci.RequestFinalizeBlock     // the latest
	Done    *abci.ResponseFinalizeBlock    // of it
	// puts another application in the place of one that cannot execute a block; nil: the block fails
	Mend    func(error) error
	Witness func() // called after every block; nil: it is not
	// finalizes and commits a block in place of App, as one that is killed meanwhile; nil: App does
	Execute func(*abci.RequestFinalizeBlock) (*abci.ResponseFinalizeBlock, error)
}

// New starts a chain at a virtual time. referee opens the work of orders; nil: as every network does.
func New(doc *cmttypes.GenesisDoc, validators []identity.Keys, referee works.Referee, db dbm.DB) (*Ledger, error) {
	first := validators[0]
	config := app.Config{Simulated: true, Referee: referee, ChainID: doc.ChainID,
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
	l := &Ledger{
		DB: db, Config: config, App: a, ChainID: doc.ChainID, Start: doc.GenesisTime,
		Validators: validators, Withhold: map[int]bool{}, Absent: map[int]bool{}, AppHash: r.AppHash,
		answers: map[string]*abci.ResponseQuery{},
	}
	l.Connection = &connection{ledger: l}
	l.Queries = client.New(l.Connection, wallet.KeyFromSeed([32]byte{}))
	return l, nil
}

// Included is what became of a transaction: executed in a block, or refused since.
type Included struct {
	Tx     []byte
	Result *abci.ExecTxResult
}

// Check asks whether a transaction may wait for a block.
func (l *Ledger) Check(tx []byte) (*abci.ResponseCheckTx, error) {
	if len(tx) > chain.MaxTxBytes {
		return nil, fmt.Errorf("sim: a transaction of %d bytes, the mempool takes %d", len(tx), chain.MaxTxBytes)
	}
	r, err := l.App.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_New})
	if err == nil && r.Code == 0 {
		l.Mempool = append(l.Mempool, tx)
	}
	return r, err
}

// Block makes the next block from the transactions that wait, at a virtual time.
func (l *Ledger) Block(ctx context.Context, now time.Duration) ([]Included, error) {
	height, at := l.Height+1, l.Start.Add(now)
	proposer := l.Validators[int(height)%len(l.Validators)].Consensus.PubKey().Address()
	p, err := l.App.PrepareProposal(&abci.RequestPrepareProposal{
		MaxTxBytes: chain.MaxBlockBytes - 1<<16, Txs: l.Mempool, LocalLastCommit: l.Commit, Height: height, Time: at,
		ProposerAddress: proposer,
	})
	if err != nil {
		return nil, err
	}
	hash := cmttypes.ToTxs(p.Txs).Hash()
	ok, err := l.App.ProcessProposal(&abci.RequestProcessProposal{
		Txs: p.Txs, ProposedLastCommit: Plain(l.Commit), Hash: hash, Height: height, Time: at, ProposerAddress: proposer,
	})
	if err != nil || ok.Status != abci.ResponseProcessProposal_ACCEPT {
		return nil, errors.Join(fmt.Errorf("sim: the proposal of block %d is refused", height), err)
	}
	votes, err := l.vote(ctx, height, hash)
	if err != nil {
		return nil, err
	}
	l.Decided = &abci.RequestFinalizeBlock{
		Txs: p.Txs, DecidedLastCommit: Plain(l.Commit), Misbehavior: l.Evidence, Hash: hash, Height: height, Time: at,
		ProposerAddress: proposer,
	}
	l.Evidence = nil
	done, err := l.execute()
	if err != nil {
		return nil, err
	}
	clear(l.answers)
	l.Height, l.Commit, l.AppHash, l.Done = height, votes, done.AppHash, done
	if l.beacon, err = l.Queries.Ledger.Beacon(ctx, height); err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, err
	}
	l.Events = done.Events
	var in []Included
	for i, tx := range p.Txs {
		waiting := slices.IndexFunc(l.Mempool, func(t []byte) bool { return bytes.Equal(t, tx) })
		if waiting >= 0 {
			l.Mempool = slices.Delete(l.Mempool, waiting, waiting+1)
			in = append(in, Included{tx, done.TxResults[i]})
			l.Events = append(l.Events, done.TxResults[i].Events...)
		}
	}
	l.Mempool = slices.DeleteFunc(l.Mempool, func(tx []byte) bool {
		r, err := l.App.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_Recheck})
		if err != nil || r.Code == 0 {
			return false
		}
		in = append(in, Included{tx, &abci.ExecTxResult{Code: r.Code, Codespace: r.Codespace, Log: r.Log}})
		return true
	})
	if l.Witness != nil {
		l.Witness()
	}
	return in, faultless(l.Events)
}

// execute finalizes and commits the block that was decided.
func (l *Ledger) execute() (*abci.ResponseFinalizeBlock, error) {
	if l.Execute != nil {
		return l.Execute(l.Decided)
	}
	done, err := l.App.FinalizeBlock(l.Decided)
	if err != nil && l.Mend != nil {
		if err = l.Mend(err); err == nil {
			done, err = l.App.FinalizeBlock(l.Decided)
		}
	}
	if err != nil {
		return nil, err
	}
	_, err = l.App.Commit()
	return done, err
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
func (l *Ledger) vote(ctx context.Context, height int64, hash []byte) (abci.ExtendedCommitInfo, error) {
	c := abci.ExtendedCommitInfo{}
	for i, k := range l.Validators {
		address := k.Consensus.PubKey().Address()
		power := abci.Validator{Address: address, Power: identity.SelfStake / 1_000_000}
		if l.Absent[i] {
			c.Votes = append(c.Votes, abci.ExtendedVoteInfo{Validator: power, BlockIdFlag: cmtproto.BlockIDFlagAbsent})
			continue
		}
		extended, err := l.App.ExtendVoteOf(ctx, app.Validator{Address: address, VRF: k.VRF},
			&abci.RequestExtendVote{Height: height, Hash: hash})
		if err != nil {
			return c, err
		}
		extension := extended.VoteExtension
		if l.Withhold[i] {
			extension = nil
		}
		r, err := l.App.VerifyVoteExtension(&abci.RequestVerifyVoteExtension{Height: height, Hash: hash,
			ValidatorAddress: address, VoteExtension: extension})
		if err != nil || r.Status != abci.ResponseVerifyVoteExtension_ACCEPT {
			return c, errors.Join(fmt.Errorf("sim: the vote of validator %d on block %d is refused", i, height), err)
		}
		signed, err := protoio.MarshalDelimited(&cmtproto.CanonicalVoteExtension{Extension: extension, Height: height,
			ChainId: l.ChainID})
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

// Plain is a commit without its extensions.
func Plain(c abci.ExtendedCommitInfo) abci.CommitInfo {
	out := abci.CommitInfo{Round: c.Round}
	for _, v := range c.Votes {
		out.Votes = append(out.Votes, abci.VoteInfo{Validator: v.Validator, BlockIdFlag: v.BlockIdFlag})
	}
	return out
}

// connection answers queries at the latest block. It is all that a client.Client of the simulator needs of CometBFT.
// An answer since the block is not computed again: every party asks for the same.
type connection struct {
	rpcclient.Client
	ledger *Ledger
}

// ABCIQueryWithOptions implements rpcclient.Client.
func (c *connection) ABCIQueryWithOptions(ctx context.Context, path string, data cmtbytes.HexBytes,
	_ rpcclient.ABCIQueryOptions) (*ctypes.ResultABCIQuery, error) {
	key := path + string(data)
	if r, ok := c.ledger.answers[key]; ok {
		return &ctypes.ResultABCIQuery{Response: *r}, nil
	}
	r, err := c.ledger.App.Query(ctx, &abci.RequestQuery{Path: path, Data: data})
	if err != nil {
		return nil, err
	}
	c.ledger.answers[key] = r
	return &ctypes.ResultABCIQuery{Response: *r}, nil
}

// Balances of all accounts that hold coins, in uzen.
func (l *Ledger) Balances(ctx context.Context) (map[string]uint64, error) {
	conn := sdkclient.Context{}.WithClient(l.Connection).WithCodec(l.App.Codec).WithInterfaceRegistry(l.App.Registry)
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
