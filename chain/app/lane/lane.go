// Package lane orders the transactions in this node's pool by sender, so that the node proposes duties first: the
// messages that members of runs and parties of disputes must send by a deadline. Other nodes check none of its
// decisions. The caller says which transactions are duties.
package lane

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	errorsmod "cosmossdk.io/errors"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
)

// Limits of the waiting transactions that are no duties. They are below the limits of CometBFT's pool (chain.Config),
// so that a duty always finds room.
const (
	maxOrdinary      = 40_000
	maxOrdinaryBytes = 40 << 20
	maxDuties        = 16 // of an account; further ones do not count as duties

	maxGranted      = 512 // free transactions of newcomers
	maxGrantedBytes = 1 << 20
	maxGrantedGas   = room.BlockGas / room.GrantedPart * 4 // the free room of four blocks

	maxOutsiders = 256 // accusations by accounts that work in no run; further ones are not duties
	mostAccuse   = 8   // of them in a block before the other transactions of the pool
)

// Lane holds the transactions of the pool. Their signatures and fees were checked.
type Lane struct {
	mu       sync.Mutex
	known    map[[sha256.Size]byte]*Waiting
	accounts map[string][]*Waiting // in the order of arrival, which is the order of sequences
	duties   map[string]int        // number of duties, by account
	ordinary room.Share            // remaining room
	granted  room.Share
	outside  int
	arrived  uint64
}

// Waiting is a transaction that waits for a block.
type Waiting struct {
	room.Declared
	Tx       []byte
	Charged  bool // this node asks for a fee for this transaction
	Rank     int  // of a duty, 1 is the most urgent; 0: no duty
	Outsider bool // the sender accuses a member of a run in which it does not work
	arrived  uint64
	until    uint64               // height after which it is void; 0: none
	sight    *censorship.Sighting // of the move of a dispute; nil: it is no move
}

// New returns an empty lane.
func New() *Lane {
	return &Lane{
		known: map[[sha256.Size]byte]*Waiting{}, accounts: map[string][]*Waiting{}, duties: map[string]int{},
		ordinary: room.Share{Count: maxOrdinary, Bytes: maxOrdinaryBytes, Gas: 1 << 63},
		granted:  room.Share{Count: maxGranted, Bytes: maxGrantedBytes, Gas: maxGrantedGas},
	}
}

// Add adds a checked transaction. It refuses a transaction that is no duty if too many of those wait.
func (l *Lane) Add(w Waiting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256(w.Tx)
	if l.known[key] != nil {
		return nil
	}
	if w.Rank > 0 && l.duties[w.Account] >= maxDuties || w.Outsider &&
		(l.outside >= maxOutsiders || l.duties[w.Account] > 0) {
		if w.Charged && w.Fee == 0 {
			return tooMany("%d duties of %s wait for a block", maxDuties, w.Account)
		}
		w.Rank, w.Outsider = 0, false
	}
	switch {
	case w.Rank > 0:
		l.duties[w.Account]++
	case !l.ordinary.Fits(w.Declared):
		return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions wait, and %d bytes more may",
			maxOrdinary-l.ordinary.Count, l.ordinary.Bytes)
	case w.grant() && !l.granted.Fits(w.Declared):
		return tooMany("%d free transactions wait for a block", maxGranted-l.granted.Count)
	default:
		l.ordinary.Take(w.Declared)
		if w.grant() {
			l.granted.Take(w.Declared)
		}
	}
	if w.Outsider {
		l.outside++
	}
	l.arrived++
	w.arrived = l.arrived
	l.known[key] = &w
	l.accounts[w.Account] = append(l.accounts[w.Account], &w)
	return nil
}

// grant reports whether the transaction is free because its sender is a newcomer.
func (w *Waiting) grant() bool { return w.Charged && w.Fee == 0 && w.Rank == 0 }

// Drop removes a transaction that is in a block, or that no block can contain any more.
func (l *Lane) Drop(tx []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256(tx)
	w := l.known[key]
	if w == nil {
		return
	}
	delete(l.known, key)
	if w.Rank == 0 {
		l.ordinary.Give(w.Declared)
		if w.grant() {
			l.granted.Give(w.Declared)
		}
	} else if l.duties[w.Account]--; l.duties[w.Account] == 0 {
		delete(l.duties, w.Account)
	}
	if w.Outsider {
		l.outside--
	}
	rest := slices.DeleteFunc(l.accounts[w.Account], func(o *Waiting) bool { return o == w })
	for _, o := range rest { // other accounts have their turn first
		l.arrived++
		o.arrived = l.arrived
	}
	if l.accounts[w.Account] = rest; len(rest) == 0 {
		delete(l.accounts, w.Account)
	}
}

// First returns the transactions that a block has before all others, as far as they fit: the duties, each after the
// earlier transactions of its account. The account with the most urgent duty is first. First skips accounts whose
// transactions do not follow their sequences. A block has at most mostAccuse accusations by accounts that work in no
// run.
func (l *Lane) First(fits func(room.Declared) bool, sequence func(account string) uint64) (txs [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type turn struct {
		list    []*Waiting
		rank    int
		at      uint64
		accuses bool
	}
	var turns []turn
	for account := range l.duties {
		t := turn{rank: 1 << 30}
		for i, w := range l.accounts[account][:min(len(l.accounts[account]), 2*maxDuties)] {
			if w.Rank > 0 {
				t.list = l.accounts[account][:i+1]
				if w.Rank < t.rank {
					t.rank, t.at, t.accuses = w.Rank, w.arrived, w.Outsider
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
		next := sequence(t.list[0].Account)
		for _, w := range t.list {
			if w.Sequence != next || !fits(w.Declared) {
				break
			}
			txs = append(txs, w.Tx)
			next++
		}
	}
	return txs
}

// tooMany is the error for a free transaction beyond the limits.
func tooMany(format string, args ...any) error {
	return errorsmod.Wrapf(sdkerrors.ErrInsufficientFee, "%s: it needs a fee", fmt.Sprintf(format, args...))
}
