// Package delegation has the rules by which accounts put stake behind the work of a worker or verifier, for a share of
// its pay. Its pool has shares; a slash takes a part of the worth of all of them at once, and a payment adds the same
// to each of them. It knows no runs and moves no coins.
package delegation

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
)

const million = 1_000_000

// Limits of pools.
const (
	CapPPM         = 500_000   // delegated stake, in millionths of the stake of the participant itself, at most
	Least          = 1_000_000 // uzen of a delegation
	MostDelegators = 1_000     // of a pool
	WornShares     = 1 << 16   // shares for one uzen, above which a pool is worn: slashes took nearly all of it
)

// Errors of this package.
var (
	ErrNoPool = errors.New("delegation: the participant has no pool")
	ErrClosed = errors.New("delegation: the pool takes no more stake")
	ErrRoom   = errors.New("delegation: more than the participant's own stake allows")
	ErrMany   = errors.New("delegation: the pool has as many delegators as it may have")
	ErrDust   = errors.New("delegation: too little")
	ErrNone   = errors.New("delegation: the account has no such delegation")
	ErrTerms  = errors.New("delegation: not terms of a pool")
	ErrParty  = errors.New("delegation: not a participant to which this account may delegate")
)

// Pool is the delegated stake of a participant.
type Pool struct {
	ID         string `cbor:"1,keyasint"`           // participant
	Commission uint32 `cbor:"2,keyasint,omitempty"` // millionths of the delegators' part of a payment
	Next       uint32 `cbor:"3,keyasint,omitempty"` // in place of Commission
	From       int64  `cbor:"4,keyasint,omitempty"` // height from which Next holds; 0: no change waits
	Closed     bool   `cbor:"5,keyasint,omitempty"` // takes no more stake

	Tokens  uint64 `cbor:"6,keyasint,omitempty"` // uzen of all shares
	Shares  uint64 `cbor:"7,keyasint,omitempty"`
	Leaving uint64 `cbor:"8,keyasint,omitempty"` // of the shares: slashed like the others, and without pay
	Joining uint64 `cbor:"9,keyasint,omitempty"` // uzen that become shares later: neither slashed nor paid

	Delegators uint32 `cbor:"10,keyasint,omitempty"`
	Slashed    uint64 `cbor:"11,keyasint,omitempty"` // uzen so far
	Issued     uint64 `cbor:"12,keyasint,omitempty"` // receipts
}

// Delegation is the part of one account in a pool.
type Delegation struct {
	Pool      string `cbor:"1,keyasint"` // participant
	Delegator string `cbor:"2,keyasint"`
	Shares    uint64 `cbor:"3,keyasint,omitempty"`
	Leaving   uint64 `cbor:"4,keyasint,omitempty"` // of the shares
	LeavesAt  int64  `cbor:"5,keyasint,omitempty"` // height; 0: none leave
	Joining   uint64 `cbor:"6,keyasint,omitempty"` // uzen that become shares at JoinsAt
	JoinsAt   int64  `cbor:"7,keyasint,omitempty"` // height; 0: none
}

// Empty reports whether nothing of a delegation is left.
func (d Delegation) Empty() bool { return d.Shares == 0 && d.Joining == 0 }

// At is the pool at a height: a commission whose time has come holds.
func (p Pool) At(height int64) Pool {
	if p.From > 0 && height >= p.From {
		p.Commission, p.Next, p.From = p.Next, 0, 0
	}
	return p
}

// Announce sets the terms of a pool. The first commission, and a lower one, hold at once. A higher one holds wait
// blocks later, in place of one that waits: a delegator that leaves when it is announced never pays it. It returns the
// height from which the commission holds.
func (p Pool) Announce(known bool, commission uint32, closed bool, wait, height int64) (Pool, int64, error) {
	if commission > million {
		return p, 0, fmt.Errorf("%w: a commission of %d millionths", ErrTerms, commission)
	}
	p = p.At(height)
	p.Closed = closed
	if known && commission > p.Commission {
		if p.From == 0 || commission != p.Next {
			p.Next, p.From = commission, height+wait
		}
		return p, p.From, nil
	}
	p.Commission, p.Next, p.From = commission, 0, 0
	return p, height, nil
}

// worth is what shares are worth in uzen, rounded down.
func (p Pool) worth(shares uint64) uint64 {
	if p.Shares == 0 {
		return 0
	}
	return reward.Times(p.Tokens, shares, p.Shares)
}

// Worth is what the shares of a delegation are worth in uzen: those that stay, and those that leave.
func (p Pool) Worth(d Delegation) (stays, leaves uint64) {
	return p.worth(d.Shares - d.Leaving), p.worth(d.Leaving)
}

// Earning are the shares that are paid.
func (p Pool) Earning() uint64 { return p.Shares - p.Leaving }

// Staying is what these are worth in uzen.
func (p Pool) Staying() uint64 { return p.worth(p.Earning()) }

// Most is the delegated stake that a stake of the participant itself allows, in uzen.
func Most(own uint64) uint64 { return market.Share(own, CapPPM) }

// Backing is the delegated stake that counts where the seats of orders are drawn, in uzen. own is the stake of the
// participant itself that stays.
func (p Pool) Backing(own uint64) uint64 { return min(p.Staying(), Most(own)) }

// Room is what may still be delegated, in uzen.
func (p Pool) Room(own uint64) uint64 {
	used, most := p.Staying()+p.Joining, Most(own)
	if p.Closed || p.worn() {
		return 0
	}
	return most - min(most, used)
}

// worn reports whether slashes took nearly all of the pool. It takes no more stake then: shares would be worth so
// little that their number is too large.
func (p Pool) worn() bool { return p.Shares > 0 && (p.Tokens == 0 || p.Tokens < p.Shares/WornShares) }

// Join adds uzen to a delegation, which become shares wait blocks later. own is the stake of the participant itself
// that stays. A delegation that joins already waits again, for all of it.
func (p Pool) Join(d Delegation, amount, own uint64, wait, height int64) (Pool, Delegation, error) {
	switch {
	case amount < Least:
		return p, d, fmt.Errorf("%w: %d uzen, at least %d", ErrDust, amount, Least)
	case p.Closed || p.worn():
		return p, d, fmt.Errorf("%w: %s", ErrClosed, p.ID)
	case amount > p.Room(own):
		return p, d, fmt.Errorf("%w: %d uzen, at most %d", ErrRoom, amount, p.Room(own))
	case d.Empty() && p.Delegators >= MostDelegators:
		return p, d, fmt.Errorf("%w: %d", ErrMany, p.Delegators)
	}
	if d.Empty() {
		p.Delegators++
	}
	p.Joining += amount
	d.Joining, d.JoinsAt = d.Joining+amount, height+wait
	return p, d, nil
}

// Enter makes shares of the uzen that join, rounded down. If the pool does not take them any more, back is the amount
// that their owner gets back. open says whether the participant still takes stake; own is its own stake that stays.
func (p Pool) Enter(d Delegation, own uint64, open bool) (after Pool, now Delegation, back uint64) {
	amount := d.Joining
	p.Joining -= amount
	d.Joining, d.JoinsAt = 0, 0
	shares := amount
	if p.Shares > 0 && p.Tokens > 0 {
		shares = reward.Times(amount, p.Shares, p.Tokens)
	}
	if !open || amount > p.Room(own) || shares == 0 || shares > maxShares-min(maxShares, p.Shares) {
		return p.left(d), d, amount
	}
	p.Tokens, p.Shares, d.Shares = p.Tokens+amount, p.Shares+shares, d.Shares+shares
	return p, d, 0
}

// maxShares bounds the shares of a pool, so that sums of two fit 64 bits.
const maxShares = 1 << 63

// left forgets the delegator of a delegation of which nothing is left.
func (p Pool) left(d Delegation) Pool {
	if d.Empty() {
		p.Delegators--
	}
	return p
}

// Leave takes uzen out of a delegation; 0: all of it. back is the part that had not joined, which its owner gets back
// at once. The rest are shares, rounded up, that leave wait blocks later, with those that leave already: they earn
// nothing, and are slashed like the others. Nothing is left, or Least.
func (p Pool) Leave(d Delegation, amount uint64, wait, height int64) (after Pool, now Delegation, back uint64,
	err error) {
	stays := d.Shares - d.Leaving
	has := d.Joining + p.worth(stays)
	switch {
	case d.Empty() || d.Joining == 0 && stays == 0:
		return p, d, 0, fmt.Errorf("%w: %s in the pool of %s", ErrNone, d.Delegator, d.Pool)
	case amount > has:
		return p, d, 0, fmt.Errorf("%w: %d uzen of %d", ErrNone, amount, has)
	}
	shares := stays
	if back = d.Joining; amount > 0 {
		back = min(back, amount)
		shares = 0
		if rest := amount - back; rest > 0 {
			shares = min(stays, audit.Ratio(rest, p.Shares, p.Tokens))
		}
		if left := has - amount; left > 0 && left < Least {
			return p, d, 0, fmt.Errorf("%w: %d uzen would be left, at least %d", ErrDust, left, Least)
		}
	}
	p.Joining -= back
	if d.Joining -= back; d.Joining == 0 {
		d.JoinsAt = 0
	}
	if shares > 0 {
		p.Leaving, d.Leaving, d.LeavesAt = p.Leaving+shares, d.Leaving+shares, height+wait
	}
	return p.left(d), d, back, nil
}

// Exit ends the shares that leave, and returns the uzen that they are worth.
func (p Pool) Exit(d Delegation) (after Pool, now Delegation, amount uint64) {
	amount = p.worth(d.Leaving)
	p.Tokens, p.Shares, p.Leaving = p.Tokens-amount, p.Shares-d.Leaving, p.Leaving-d.Leaving
	d.Shares, d.Leaving, d.LeavesAt = d.Shares-d.Leaving, 0, 0
	return p.left(d), d, amount
}

// Slash takes the part of the delegated stake that a slash takes of the participant's own: part of whole, rounded up.
func (p Pool) Slash(part, whole uint64) (Pool, uint64) {
	if whole == 0 {
		return p, 0
	}
	amount := min(p.Tokens, audit.Ratio(p.Tokens, min(part, whole), whole))
	p.Tokens, p.Slashed = p.Tokens-amount, p.Slashed+amount
	return p, amount
}
