package app

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"sync"

	errorsmod "cosmossdk.io/errors"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/x/beacon/censorship"
)

// What waits for a block that is no duty, at most: less than the pool of CometBFT holds (chain.Config), so that a duty
// always finds room.
const (
	maxOrdinary      = 40_000
	maxOrdinaryBytes = 40 << 20
	maxDuties        = 16 // of an account; more of them are no duties

	maxGranted      = 512 // of newcomers, free
	maxGrantedBytes = 1 << 20
	maxGrantedGas   = BlockGas / grantedPart * 4 // what is free in four blocks

	maxOutsiders = 256 // accusations by accounts that work in no run; further ones are not duties
	mostAccuse   = 8   // of them in a block before what comes in the order of the pool
)

// lane is what this node's pool of transactions holds, by sender, to propose duties before everything else: what
// members of runs and parties of disputes have to say in time. It decides nothing that others check; what is in it was
// checked with its signature and its fee.
type lane struct {
	mu       sync.Mutex
	known    map[[sha256.Size]byte]*waiting
	accounts map[string][]*waiting // in the order of their arrival, which is that of their sequences
	duties   map[string]int        // how many of an account are duties
	ordinary share                 // what there is still room for
	granted  share
	outside  int
	arrived  uint64
}

// waiting is a transaction that waits for a block.
type waiting struct {
	declared
	tx       []byte
	charged  bool // this node asks for a fee for such
	rank     int  // of a duty, the most urgent is 1; 0: none
	outsider bool // the sender accuses a member of a run in which it does not work
	arrived  uint64
	until    uint64               // height after which it is void; 0: none
	sight    *censorship.Sighting // of the move of a dispute; nil: it is none
}

func newLane() *lane {
	return &lane{
		known: map[[sha256.Size]byte]*waiting{}, accounts: map[string][]*waiting{}, duties: map[string]int{},
		ordinary: share{maxOrdinary, maxOrdinaryBytes, 1 << 63}, granted: share{maxGranted, maxGrantedBytes, maxGrantedGas},
	}
}

// add takes a transaction that was checked. It is refused if it is no duty and too many others wait that are none.
func (l *lane) add(w waiting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256(w.tx)
	if l.known[key] != nil {
		return nil
	}
	if w.rank > 0 && l.duties[w.account] >= maxDuties || w.outsider &&
		(l.outside >= maxOutsiders || l.duties[w.account] > 0) {
		if w.charged && w.fee == 0 {
			return tooMany("%d duties of %s wait for a block", maxDuties, w.account)
		}
		w.rank, w.outsider = 0, false
	}
	switch {
	case w.rank > 0:
		l.duties[w.account]++
	case !l.ordinary.fits(w.declared):
		return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions wait, and %d bytes more may",
			maxOrdinary-l.ordinary.count, l.ordinary.bytes)
	case w.grant() && !l.granted.fits(w.declared):
		return tooMany("%d free transactions wait for a block", maxGranted-l.granted.count)
	default:
		l.ordinary.take(w.declared)
		if w.grant() {
			l.granted.take(w.declared)
		}
	}
	if w.outsider {
		l.outside++
	}
	l.arrived++
	w.arrived = l.arrived
	l.known[key] = &w
	l.accounts[w.account] = append(l.accounts[w.account], &w)
	return nil
}

// grant reports whether it is free for a newcomer.
func (w *waiting) grant() bool { return w.charged && w.fee == 0 && w.rank == 0 }

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
		l.ordinary.give(w.declared)
		if w.grant() {
			l.granted.give(w.declared)
		}
	} else if l.duties[w.account]--; l.duties[w.account] == 0 {
		delete(l.duties, w.account)
	}
	if w.outsider {
		l.outside--
	}
	rest := slices.DeleteFunc(l.accounts[w.account], func(o *waiting) bool { return o == w })
	for _, o := range rest { // the others have their turn first
		l.arrived++
		o.arrived = l.arrived
	}
	if l.accounts[w.account] = rest; len(rest) == 0 {
		delete(l.accounts, w.account)
	}
}

// first are the transactions that go before all others, as far as they fit: the duties, each after what its account
// sent before it. The account with the most urgent one is first. An account whose transactions do not follow its
// sequence is passed over. Of the accounts that work in no run, mostAccuse are served in a block.
func (l *lane) first(fits func(declared) bool, sequence func(account string) uint64) (txs [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type turn struct {
		list    []*waiting
		rank    int
		at      uint64
		accuses bool
	}
	var turns []turn
	for account := range l.duties {
		t := turn{rank: 1 << 30}
		for i, w := range l.accounts[account][:min(len(l.accounts[account]), 2*maxDuties)] {
			if w.rank > 0 {
				t.list = l.accounts[account][:i+1]
				if w.rank < t.rank {
					t.rank, t.at, t.accuses = w.rank, w.arrived, w.outsider
				}
			}
		}
		turns = append(turns, t)
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at)) })
	accusations := 0
	for _, t := range turns {
		if len(t.list) == 0 || t.accuses && accusations == mostAccuse {
			continue
		}
		if t.accuses {
			accusations++
		}
		next := sequence(t.list[0].account)
		for _, w := range t.list {
			if w.sequence != next || !fits(w.declared) {
				break
			}
			txs = append(txs, w.tx)
			next++
		}
	}
	return txs
}

// enters puts what passed every other check into the lane.
type enters struct{ app *App }

// AnteHandle implements sdk.AnteDecorator.
func (e enters) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if !ctx.IsCheckTx() || ctx.IsReCheckTx() || simulate {
		return next(ctx, tx, simulate)
	}
	price, err := e.app.price(ctx)
	if err != nil {
		return ctx, err
	}
	w := waiting{declared: declare(tx, len(ctx.TxBytes())), tx: ctx.TxBytes()}
	w.charged = e.app.asks(ctx, price, w.gas) > 0
	if w.account != "" {
		w.rank = e.app.rank(ctx, w.account, tx.GetMsgs())
		w.look(ctx, e.app.keepers.training, tx)
	}
	if w.rank == 0 {
		accuses, bonded := e.app.outsider(ctx, w.account, tx.GetMsgs())
		switch {
		case accuses && bonded:
			w.outsider, w.rank = true, 2
		case accuses:
			w.outsider, w.rank = true, 3
		}
	}
	if err := e.app.lane.add(w); err != nil {
		return ctx, err
	}
	return next(ctx, tx, simulate)
}
