package bridged

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmtversion "github.com/cometbft/cometbft/proto/tendermint/version"
	"github.com/cometbft/cometbft/state/txindex/kv"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/sim/ledger"
)

const (
	validators = 3
	accounts   = 6
	power      = identity.SelfStake / 1_000_000
)

// shore is one of the two chains: an application on disk that is killed, one in memory that is not and executes the
// same blocks, and what the validators sign and index.
type shore struct {
	*ledger.Ledger
	play    *play
	other   *shore
	dir     string
	disk    *disk
	replica *app.App
	coin    coin.Coin // that it issued

	set     *cmttypes.ValidatorSet
	headers []*cmttypes.SignedHeader // by height
	index   *kv.TxIndex
	asked   bool // the relay has asked for the latest block, and waits for the next one
	channel string
	last    time.Duration // when its latest block was made
	results []byte        // hash of those of the latest block

	waiting map[string]bool               // accounts with a transaction that waits
	who     map[string]string             // of transactions that wait
	done    map[string]*abci.ExecTxResult // of the relay, by transaction
	model   model
}

// symbol is that of the coin that a chain issues; chains are called symbol-1.
func issued(symbol string) coin.Coin {
	return coin.Coin{Denom: "base/" + symbol, Symbol: symbol, Exponent: 6}
}

func account(i int) *wallet.Key {
	return wallet.KeyFromSeed(canon.Sum("bridged/account", []byte{byte(i)}))
}

// relayer is the number of the account of the relay.
const relayer = accounts

func open(t *testing.T, p *play, symbol, foreign, voucher string) *shore {
	t.Helper()
	s := &shore{play: p, dir: t.TempDir(), coin: issued(symbol), waiting: map[string]bool{}, who: map[string]string{},
		done: map[string]*abci.ExecTxResult{}, index: kv.NewTxIndex(cmtdb.NewMemDB()), model: newModel(),
		headers: []*cmttypes.SignedHeader{nil}}
	var keys []identity.Keys
	var set []*cmttypes.Validator
	for i := range validators {
		k := identity.NewKeys(canon.Sum("bridged/"+symbol, []byte{byte(i)}))
		keys, set = append(keys, k), append(set, cmttypes.NewValidator(k.Consensus.PubKey(), power))
	}
	s.set = cmttypes.NewValidatorSet(set)
	var funded []chain.Funded
	for i := range accounts + 1 {
		here := coin.Registered{Coin: s.coin, Waiting: 1000}
		there := coin.Registered{Coin: coin.Coin{Denom: voucher, Symbol: foreign, Exponent: 6}, Waiting: 1000}
		to := account(i).Address()
		funded = append(funded, chain.Funded{Address: to, Amount: 1_000_000_000},
			chain.Funded{Address: to, Amount: 1_000_000_000, Coin: here}, chain.Funded{Address: to, Coin: there})
	}
	doc, err := chain.Genesis(symbol+"-1", start, keys, funded)
	p.must(err)
	s.disk = s.load()
	s.Ledger, err = ledger.New(doc, keys, nowork.Open, s.disk)
	p.must(err)
	never, err := ledger.New(doc, keys, nowork.Open, dbm.NewMemDB())
	p.must(err)
	s.replica, s.Execute = never.App, s.execute
	s.model.supply = nil // is read after the first block
	t.Cleanup(func() { _ = s.disk.DB.Close() })
	return s
}

// load opens the files of the store as they are.
func (s *shore) load() *disk {
	db, err := dbm.NewGoLevelDB("application", s.dir, nil)
	s.play.must(err)
	return &disk{DB: db, left: -1}
}

// kill ends the application as a signal would, and starts it again from its files.
func (s *shore) kill(moment string) {
	s.play.kills[moment]++
	s.disk.dead = true
	s.play.must(s.disk.DB.Close())
	s.disk = s.load()
	a, err := app.New(log.NewNopLogger(), s.disk, s.Config)
	s.play.must(err)
	s.App, s.DB = a, s.disk
}

// commit commits, and reports whether the application was killed meanwhile.
func (s *shore) commit() (killed bool) {
	defer func() {
		if v := recover(); v != nil && !s.disk.dead {
			panic(v)
		}
		killed = s.disk.dead
		s.disk.left = -1
	}()
	if _, err := s.App.Commit(); err != nil && !s.disk.dead {
		s.play.fail("%s: the commit: %v", s.ChainID, err)
	}
	return false
}

// execute executes a block, on the application that is killed as often as is drawn, and on the other.
func (s *shore) execute(decided *abci.RequestFinalizeBlock) (done *abci.ResponseFinalizeBlock, err error) {
	for s.App.LastBlockHeight() < decided.Height {
		again, err := s.App.FinalizeBlock(decided)
		if err != nil {
			return nil, err
		}
		if done != nil && !bytes.Equal(digest(done), digest(again)) {
			s.play.fail("%s: block %d has other results after a restart", s.ChainID, decided.Height)
		}
		done = again
		if s.play.killing && s.play.Often(4) {
			s.kill("before commit")
			continue
		}
		if s.play.killing && s.play.Often(8) {
			s.disk.left = s.play.Intn(30)
		}
		if s.commit() {
			s.kill("in commit")
		}
	}
	same, err := s.replica.FinalizeBlock(decided)
	if err != nil {
		return nil, err
	}
	if _, err := s.replica.Commit(); err != nil {
		return nil, err
	}
	if !bytes.Equal(same.AppHash, s.App.LastCommitID().Hash) || !bytes.Equal(digest(same), digest(done)) {
		s.play.fail("%s: block %d has hash %X, and results %X; without a kill %X and %X", s.ChainID, decided.Height,
			s.App.LastCommitID().Hash, digest(done), same.AppHash, digest(same))
	}
	if decided.Height > 1 && len(done.ValidatorUpdates) > 0 {
		s.play.fail("%s: block %d changes the validators, which this play does not do", s.ChainID, decided.Height)
	}
	return done, nil
}

// digest is the digest of the results of a block that its successor has.
func digest(r *abci.ResponseFinalizeBlock) []byte { return cmttypes.NewResults(r.TxResults).Hash() }

// block makes the next block.
func (s *shore) block() {
	if s.play.killing && s.play.Often(4) {
		s.kill("between blocks")
	}
	before, results := s.AppHash, s.results
	in, err := s.Block(s.play.ctx, s.play.now)
	s.play.must(err)
	s.last, s.results = s.play.now, digest(s.Done)
	s.sign(before, results)
	for i, tx := range s.Decided.Txs {
		s.play.must(s.index.Index(&abci.TxResult{Height: s.Height, Index: uint32(i), Tx: tx, Result: *s.Done.TxResults[i]}))
	}
	for _, i := range in {
		tx := string(i.Tx)
		if who, known := s.who[tx]; known {
			delete(s.waiting, who)
			delete(s.who, tx)
			s.play.count(i.Result)
			continue
		}
		s.done[tx] = i.Result
	}
	s.follow()
	s.check()
}

// sign makes the header of the latest block, which the validators sign.
func (s *shore) sign(appHash, results []byte) {
	h := &cmttypes.Header{
		Version: cmtversion.Consensus{Block: version.BlockProtocol}, ChainID: s.ChainID, Height: s.Height,
		Time: s.Decided.Time, DataHash: s.Decided.Hash, ValidatorsHash: s.set.Hash(), NextValidatorsHash: s.set.Hash(),
		ConsensusHash: cmttypes.DefaultConsensusParams().Hash(), AppHash: appHash, LastResultsHash: results,
		ProposerAddress: s.Decided.ProposerAddress,
	}
	if s.Height > 1 {
		h.LastBlockID = s.headers[s.Height-1].Commit.BlockID
		h.LastCommitHash = s.headers[s.Height-1].Commit.Hash()
	}
	id := cmttypes.BlockID{Hash: h.Hash(), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: h.Hash()}}
	c := &cmttypes.Commit{Height: s.Height, BlockID: id}
	for i, v := range s.set.Validators {
		vote := cmttypes.Vote{Type: cmtproto.PrecommitType, Height: s.Height, BlockID: id, Timestamp: h.Time,
			ValidatorAddress: v.Address, ValidatorIndex: int32(i)}
		for _, k := range s.Validators {
			if bytes.Equal(k.Consensus.PubKey().Address(), v.Address) {
				signature, err := k.Consensus.Sign(cmttypes.VoteSignBytes(s.ChainID, vote.ToProto()))
				s.play.must(err)
				c.Signatures = append(c.Signatures, cmttypes.CommitSig{BlockIDFlag: cmttypes.BlockIDFlagCommit,
					ValidatorAddress: v.Address, Timestamp: h.Time, Signature: signature})
			}
		}
	}
	s.headers = append(s.headers, &cmttypes.SignedHeader{Header: h, Commit: c})
}

// send signs a transaction and hands it to the validators.
func (s *shore) send(ctx context.Context, key *wallet.Key, build built) (tx []byte, err error) {
	number, sequence, err := s.Queries.Coins.Sequence(ctx, key.Address())
	if err != nil {
		return nil, err
	}
	if tx, err = transaction.Sign(ctx, key, transaction.Account{ChainID: s.ChainID, Number: number, Sequence: sequence},
		0, build...); err != nil {
		return nil, err
	}
	r, err := s.Check(tx)
	if err != nil {
		return nil, fmt.Errorf("bridged: %w", err)
	}
	return tx, transaction.Refusal(r.Codespace, r.Code, r.Log)
}
