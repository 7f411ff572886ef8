package app

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"sync"

	errorsmod "cosmossdk.io/errors"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/training"
)

// What waits for a block that is no duty, at most: less than the pool of CometBFT holds (chain.Config), so that a duty always finds room.
const (
	maxOrdinary      = 40_000
	maxOrdinaryBytes = 40 << 20
	maxDuties        = 16 // of an account; more of them are no duties
)

// lane is what this node's pool of transactions holds, by sender, to propose duties before everything else: what members of runs and
// parties of disputes have to say in time. It decides nothing that others check; what is in it was checked with its signature and its fee.
type lane struct {
	mu       sync.Mutex
	known    map[[sha256.Size]byte]*waiting
	accounts map[string][]*waiting // in the order of their arrival, which is that of their sequences
	duties   map[string]int        // how many of an account are duties
	ordinary int
	bytes    int // of the ordinary ones
	arrived  uint64
}

// waiting is a transaction that waits for a block.
type waiting struct {
	tx       []byte
	account  string
	sequence uint64
	rank     int // of a duty, the most urgent is 1; 0: none
	arrived  uint64
	until    uint64           // height after which it is void; 0: none
	sight    *beacon.Sighting // of the move of a dispute; nil: it is none
}

func newLane() *lane {
	return &lane{known: map[[sha256.Size]byte]*waiting{}, accounts: map[string][]*waiting{}, duties: map[string]int{}}
}

// add takes a transaction that was checked. It is refused if it is no duty and too many others wait that are none.
func (l *lane) add(w waiting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256(w.tx)
	if l.known[key] != nil {
		return nil
	}
	if w.rank > 0 && l.duties[w.account] >= maxDuties {
		w.rank = 0
	}
	if w.rank == 0 {
		if l.ordinary >= maxOrdinary || l.bytes+len(w.tx) > maxOrdinaryBytes {
			return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions of %d bytes wait", l.ordinary, l.bytes)
		}
		l.ordinary++
		l.bytes += len(w.tx)
	} else {
		l.duties[w.account]++
	}
	l.arrived++
	w.arrived = l.arrived
	l.known[key] = &w
	l.accounts[w.account] = append(l.accounts[w.account], &w)
	return nil
}

// drop forgets a transaction that is in a block, or can no longer be.
func (l *lane) drop(tx []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256(tx)
	w := l.known[key]
	if w == nil {
		return
	}
	delete(l.known, key)
	if w.rank == 0 {
		l.ordinary--
		l.bytes -= len(w.tx)
	} else if l.duties[w.account]--; l.duties[w.account] == 0 {
		delete(l.duties, w.account)
	}
	rest := slices.DeleteFunc(l.accounts[w.account], func(o *waiting) bool { return o == w })
	if l.accounts[w.account] = rest; len(rest) == 0 {
		delete(l.accounts, w.account)
	}
}

// first are the transactions that go before all others, of so many bytes: the duties, each after what its account sent before it. The
// account with the most urgent one is first. An account whose transactions do not follow its sequence is passed over.
func (l *lane) first(bytes int64, sequence func(account string) uint64) (txs [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type turn struct {
		list []*waiting
		rank int
		at   uint64
	}
	var turns []turn
	for account := range l.duties {
		t := turn{rank: 1 << 30}
		for i, w := range l.accounts[account][:min(len(l.accounts[account]), 2*maxDuties)] {
			if w.rank > 0 {
				t.list = l.accounts[account][:i+1]
				if w.rank < t.rank {
					t.rank, t.at = w.rank, w.arrived
				}
			}
		}
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at)) })
	for _, t := range turns {
		if len(t.list) == 0 {
			continue
		}
		next := sequence(t.list[0].account)
		for _, w := range t.list {
			if bytes -= int64(len(w.tx)) + 8; w.sequence != next || bytes < 0 {
				bytes += int64(len(w.tx)) + 8
				break
			}
			txs = append(txs, w.tx)
			next++
		}
	}
	return txs
}

// enters puts what passed every other check into the lane.
type enters struct {
	lane     *lane
	training *training.Keeper
}

// AnteHandle implements sdk.AnteDecorator.
func (e enters) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if !ctx.IsCheckTx() || ctx.IsReCheckTx() || simulate {
		return next(ctx, tx, simulate)
	}
	w := waiting{tx: ctx.TxBytes()}
	if signed, ok := tx.(authsigning.SigVerifiableTx); ok {
		signers, err := signed.GetSigners()
		if err != nil {
			return ctx, err
		}
		signatures, err := signed.GetSignaturesV2()
		if err != nil {
			return ctx, err
		}
		if len(signers) == 1 && len(signatures) == 1 {
			w.account, w.sequence = sdk.AccAddress(signers[0]).String(), signatures[0].Sequence
			w.rank = e.rank(ctx, w.account, tx.GetMsgs())
			w.look(ctx, e.training, tx)
		}
	}
	if err := e.lane.add(w); err != nil {
		return ctx, err
	}
	return next(ctx, tx, simulate)
}

// rank is that of the least urgent message; 0 if one is no duty.
func (e enters) rank(ctx sdk.Context, account string, msgs []sdk.Msg) (rank int) {
	for _, m := range msgs {
		r := e.training.Duty(ctx, account, m)
		if r == 0 {
			return 0
		}
		rank = max(rank, r)
	}
	return rank
}

// prepareProposal proposes duties first, in at most three quarters of the block, then what the pool gives in its order.
func (a *App) prepareProposal(ctx sdk.Context, req *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	front := a.lane.first(req.MaxTxBytes/4*3, func(account string) uint64 {
		address, err := sdk.AccAddressFromBech32(account)
		if err != nil {
			return 0
		}
		if known := a.keepers.accounts.GetAccount(ctx, address); known != nil {
			return known.GetSequence()
		}
		return 0
	})
	taken := map[[sha256.Size]byte]bool{}
	for _, tx := range front {
		taken[sha256.Sum256(tx)] = true
	}
	for _, tx := range req.Txs {
		if len(taken) == 0 || !taken[sha256.Sum256(tx)] {
			front = append(front, tx)
		}
	}
	of := *req
	of.Txs = front
	return a.keepers.beacon.PrepareProposal(ctx, &of)
}
