package inspect

import (
	"cmp"
	"context"
	"slices"

	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/delegation"
)

// Pool is the delegated stake of a participant. Amounts are in uzen.
type Pool struct {
	Account    string      `json:"account"`
	Commission uint32      `json:"commission_ppm"`           // of the delegators' part of a payment
	Next       *Commission `json:"next_commission,omitzero"` // absent: no other is announced
	Closed     bool        `json:"closed"`
	Own        uint64      `json:"own_stake_uzen"` // of the participant itself, that stays
	Delegated  uint64      `json:"delegated_uzen"` // that is paid
	Backing    uint64      `json:"backing_uzen"`   // of it, that counts where seats are drawn
	Joining    uint64      `json:"joining_uzen"`
	Leaving    uint64      `json:"leaving_uzen"`
	Room       uint64      `json:"room_uzen"` // that may still be delegated
	Slashed    uint64      `json:"slashed_uzen"`
	Delegators uint32      `json:"delegators"`
	Pay        []PoolPay   `json:"pay"`
}

// Commission is one that is announced.
type Commission struct {
	PPM  uint32 `json:"ppm"`
	From int64  `json:"from"` // height
}

// PoolPay is what the delegators of a pool were paid in a coin, in its grains.
type PoolPay struct {
	Coin coin.Coin `json:"coin"`
	Paid uint64    `json:"paid"` // so far
	Held uint64    `json:"held"` // and not claimed
}

// Delegation is the part of an account in a pool. Amounts are in uzen.
type Delegation struct {
	Participant string    `json:"participant"`
	Delegator   string    `json:"delegator"`
	Stake       uint64    `json:"stake_uzen"` // that is paid, after slashes
	Joining     uint64    `json:"joining_uzen"`
	JoinsAt     int64     `json:"joins_at,omitempty"` // height
	Leaving     uint64    `json:"leaving_uzen"`
	LeavesAt    int64     `json:"leaves_at,omitempty"` // height
	Due         []PoolDue `json:"due"`                 // pay that is not claimed
}

// PoolDue is an amount of a coin, in its grains.
type PoolDue struct {
	Coin   coin.Coin `json:"coin"`
	Amount uint64    `json:"amount"`
}

// Pools are those of a network, the one with the most room first.
func Pools(ctx context.Context, network string) ([]Pool, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all, err := c.Delegation.Pools(ctx)
	list := make([]Pool, 0, len(all))
	for _, v := range all {
		_, leaving := v.Worth(delegation.Delegation{Shares: v.Leaving, Leaving: v.Leaving})
		p := Pool{Account: v.ID, Commission: v.Commission, Closed: v.Closed, Own: v.Own, Delegated: v.Staying,
			Backing: v.Backing, Joining: v.Joining, Leaving: leaving, Room: v.Room, Slashed: v.Slashed,
			Delegators: v.Delegators, Pay: []PoolPay{}}
		if v.From > 0 {
			p.Next = &Commission{PPM: v.Next, From: v.From}
		}
		for _, u := range v.Purses {
			p.Pay = append(p.Pay, PoolPay{Coin: u.Coin, Paid: u.Paid, Held: u.Held})
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b Pool) int { return cmp.Compare(b.Room, a.Room) })
	return list, err
}

// Delegations are those of an account: the stake that it delegates, or, with in, the stake that is delegated to it.
func Delegations(ctx context.Context, network, account string, in bool) ([]Delegation, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ask := c.Delegation.Delegations
	if in {
		ask = c.Delegation.Delegators
	}
	all, err := ask(ctx, account)
	list := make([]Delegation, 0, len(all))
	for _, p := range all {
		d := Delegation{Participant: p.Pool, Delegator: p.Delegator, Stake: p.Stays, Joining: p.Joining,
			JoinsAt: p.JoinsAt, Leaving: p.Leaves, LeavesAt: p.LeavesAt, Due: []PoolDue{}}
		for _, due := range p.Due {
			d.Due = append(d.Due, PoolDue{Coin: due.Coin, Amount: due.Grains})
		}
		list = append(list, d)
	}
	return list, err
}
